"""The map of a workspace's memories: near in meaning is near on the map."""
