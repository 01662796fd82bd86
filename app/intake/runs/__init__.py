"""Runs of a pipeline: their outcomes, observations, judgements and ratings."""
