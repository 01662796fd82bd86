"""Read-only views over the store: the map, novelty, exports."""
