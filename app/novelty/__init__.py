"""How much texts add beyond what is stored."""
