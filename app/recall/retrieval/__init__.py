"""Finds memories: two arms, fusion, association, quality."""
