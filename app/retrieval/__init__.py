"""Finding: two arms, fusion, association, quality, and the history made of it."""
