"""Measures how well a store is searched, on a user's own questions or on known items, and fits weights to it."""
