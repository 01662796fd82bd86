"""Where a page ended, as an opaque text."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from app.errors import InvalidInput
from app.memories.browse import Place
from app.runs.browse import Place as RunPlace

NO_CURSOR = InvalidInput("cursor", "is not one that a page gave; leave it out for the first page")


def cursor_of(created_at: datetime, identity: UUID | str) -> str:
    """The cursor for the page after this item."""
    return base64.urlsafe_b64encode(f"{created_at.isoformat()} {identity}".encode()).decode()


def place_of(cursor: str | None) -> Place | None:
    """Where the page before ended; None for the first page.

    Raises:
        InvalidInput: it is no cursor of ours.
    """
    place = run_place_of(cursor)
    try:
        return None if place is None else (place[0], UUID(place[1]))
    except ValueError:
        raise NO_CURSOR from None


def run_place_of(cursor: str | None) -> RunPlace | None:
    """The same where items are named by a text.

    Raises:
        InvalidInput: it is no cursor of ours.
    """
    if cursor is None:
        return None
    try:
        moment, _, identity = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        if "\0" in identity:
            raise NO_CURSOR
        return datetime.fromisoformat(moment), identity
    except (ValueError, binascii.Error):
        raise NO_CURSOR from None
