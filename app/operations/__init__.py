"""Checks, shows and maintains the service and its store, across all workspaces."""
