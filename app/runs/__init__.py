"""Runs: what a pipeline did, what it was given and how it was judged."""
