"""The same work through Priors' public API and through what a user would pick instead; see `make bench-peers`."""
