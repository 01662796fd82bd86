"""Judgements: extracted from reports and runs, and assembled to the history of a test case."""
