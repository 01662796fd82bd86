"""The formats of session logs: a reader for each program that writes them."""
