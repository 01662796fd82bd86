"""Ranks candidates. Pure."""
