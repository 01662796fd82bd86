"""Items: JSON values under a namespace and a key, which may expire, found by filters and by meaning."""
