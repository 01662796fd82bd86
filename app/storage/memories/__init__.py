"""The core room: the memory, and its life from storing to retiring."""
