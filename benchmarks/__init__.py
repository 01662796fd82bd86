"""Measurements: each module prints a table and writes JSON. `python -m benchmarks` runs all."""
