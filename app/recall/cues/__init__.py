"""Cues: what sessions taught, and how it comes back before the mistake is made again."""
