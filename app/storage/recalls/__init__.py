"""The log of recalls: which query was given which memories, and what became of them."""
