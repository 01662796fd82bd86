"""The command line. Everything heavy is imported by the command that needs it, so that `--help` answers at once."""

from app.cli.main import app, main

__all__ = ["app", "main"]
