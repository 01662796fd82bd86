"""Finds everything in a workspace that says the same as one memory."""
