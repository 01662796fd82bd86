"""Compresses finished runs into observations."""
