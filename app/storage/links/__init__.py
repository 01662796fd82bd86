"""Links between memories: found in their texts, by their vectors, or given."""
