"""Imports the store of an earlier harness."""
