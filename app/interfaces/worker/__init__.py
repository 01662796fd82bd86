"""Background jobs and the worker that runs them."""
