"""Stores the ratings that people give."""
