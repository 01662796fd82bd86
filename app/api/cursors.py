"""Where a page ended, as an opaque text."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from app.errors import InvalidInput
from app.memories.browse import Place


def cursor_of(created_at: datetime, identity: UUID) -> str:
    """The cursor for the page after this item."""
    return base64.urlsafe_b64encode(f"{created_at.isoformat()} {identity}".encode()).decode()


def place_of(cursor: str | None) -> Place | None:
    """Where the page before ended; None for the first page.

    Raises:
        InvalidInput: it is no cursor of ours.
    """
    if cursor is None:
        return None
    try:
        moment, _, identity = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return datetime.fromisoformat(moment), UUID(identity)
    except (ValueError, binascii.Error):
        raise InvalidInput("cursor", "is not one that a page gave; leave it out for the first page") from None
