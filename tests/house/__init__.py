"""Measures the code of `app/`: `python -m tests.house` prints the table, `tests/test_house.py` holds the laws."""
