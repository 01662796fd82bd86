"""The core room: what a memory is, and its life from remembering to retiring."""
