"""Where a page ended, as an opaque text."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from app.errors import InvalidInput
from app.memories.browse import Place
from app.runs.browse import Place as RunPlace

SORT_RANGE = (-10.0, 20.0)
"""Of scores and qualities, with what stands for a missing one."""

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


def sorted_cursor_of(place: datetime | float, identity: UUID) -> str:
    """The cursor for the page after the item of this value in the order."""
    shown = place.isoformat() if isinstance(place, datetime) else repr(float(place))
    return base64.urlsafe_b64encode(f"{shown} {identity}".encode()).decode()


def sorted_place_of(cursor: str | None, sort: str) -> tuple[datetime | float, UUID] | None:
    """Where the page before ended in the order of `sort`; None for the first page.

    Raises:
        InvalidInput: it is no cursor of ours, or one of another order.
    """
    if cursor is None or sort in {"created", "occurred"}:
        return place_of(cursor)
    try:
        shown, _, identity = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        place = float(shown)
        if not SORT_RANGE[0] <= place <= SORT_RANGE[1]:
            raise NO_CURSOR
        return place, UUID(identity)
    except (ValueError, binascii.Error):
        raise NO_CURSOR from None
