"""Priors: the memory service for agent pipelines."""
