"""Imports what an earlier harness stored."""
