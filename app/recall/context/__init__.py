"""Makes the history that an agent reads before it acts."""
