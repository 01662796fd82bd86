"""Checks a plan before it is carried out: what was learnt about each of its steps, and what its case is faulted for."""
