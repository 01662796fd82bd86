"""The map of a workspace's memories."""
