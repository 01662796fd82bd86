"""Scans text for injected instructions and masks secrets. Pure."""
