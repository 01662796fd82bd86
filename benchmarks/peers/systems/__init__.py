"""One file a system. None is imported before it is wanted: each brings its own libraries."""
