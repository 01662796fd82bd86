"""The command line. Each command itself imports the slow modules, so that `priors --help` answers at once.

Seconds of a core that an import takes, beside 0.1 for `priors --help` itself: SQLAlchemy 0.75, Litestar 0.3, structlog
and numpy 0.2 each, rich's tables 0.07, queries and views 0.05 each, msgspec 0.03. `app.wiring` and every verb bring
SQLAlchemy.
"""

from app.cli.main import app, main

__all__ = ["app", "main"]
