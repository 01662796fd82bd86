"""Takes in session logs: conversations and work logs, turn by turn."""
