"""Makes memories searchable: the lexical index, the vectors, and the queues of pending work."""
