"""The estimated effects of memories on later runs: what insight estimated, for ranking, Review and reports."""
