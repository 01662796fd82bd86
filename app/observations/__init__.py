"""Finished runs compressed to a title, a narrative and facts."""
