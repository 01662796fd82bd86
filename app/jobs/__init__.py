"""Background work: the procrastinate app, its tasks, and the worker that runs them."""
