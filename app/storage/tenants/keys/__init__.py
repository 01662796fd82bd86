"""API keys: what each may do, in which workspaces, and how long."""
