"""Takes in report files: scan, prepare, apply."""
