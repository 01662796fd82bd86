"""Mines what several sessions, and runs, have in common: procedures, choices and precedents."""
