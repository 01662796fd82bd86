"""Takes in memories from outside: reports and imports."""
