"""Structured logs: readable on a terminal, JSON elsewhere, on standard error."""

import logging
import sys

import structlog
from structlog.typing import Processor

from app.settings import Settings

QUIET = ("procrastinate", "watchfiles", "httpx", "httpcore", "openai", "alembic", "fastembed", "uvicorn.access")
"""Libraries whose news is not ours unless something is wrong."""


def configure(settings: Settings, *, quiet: bool = False) -> None:
    """Send this process' log, that of its libraries included, to standard error in the configured form.

    `quiet` leaves out what is not at least a warning: a command's output is its answer.
    """
    level = "warning" if quiet and settings.log_level != "error" else settings.log_level
    as_json = settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info if as_json else structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
