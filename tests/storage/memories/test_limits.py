"""What cannot be stored is refused with the field and the mend."""

from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from app.foundation.text.data import unstorable
from app.storage.memories.gate import reason_to_reject
from app.storage.memories.memory import NewMemory, SourceKind, SourceReference

GOOD = NewMemory(kind="note", body="text", source=SourceReference(kind="other", uri="a"), ordinal=0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "poem"}, "kind"),
        ({"body": " \n"}, "body"),
        ({"body": "a\0b"}, "body"),
        ({"body": "\ud83d"}, "body"),
        ({"body": "x" * 200_001}, "body"),
        ({"title": "x" * 1001}, "title"),
        ({"ordinal": -1}, "ordinal"),
        ({"ordinal": 2**31}, "ordinal"),
        ({"source": None}, "ordinal"),
        ({"source": SourceReference(kind=cast("SourceKind", "web"), uri="a")}, "source.kind"),
        ({"source": SourceReference(kind="other", uri=" ")}, "source.uri"),
        ({"source": SourceReference(kind="other", uri="a\0")}, "source.uri"),
        ({"final_score": 10.1}, "final_score"),
        ({"final_score": float("nan")}, "final_score"),
        ({"final_score": 1e-46}, "final_score"),
        ({"tags": ("",)}, "tags[0]"),
        ({"tags": (" ",)}, "tags"),
        ({"tags": ("t",) * 65}, "tags"),
        ({"tags": ("a\0",)}, "tags"),
        ({"metadata": {"deep": {"key": "a\0"}}}, "metadata.deep.key"),
        ({"metadata": {"a\0": 1}}, "metadata"),
        ({"occurred_at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))}, "occurred_at"),
    ],
)
def test_each_fault_is_named(change: dict[str, Any], field: str) -> None:
    reason = reason_to_reject(structs.replace(GOOD, **change))
    assert reason is not None
    assert reason.startswith(f"{field}: ")


def test_a_sound_memory_is_taken() -> None:
    assert reason_to_reject(GOOD) is None


def test_metadata_nested_without_end_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(10_000):
        nested = {"n": nested}
    assert any("deeper" in reason for reason in unstorable(nested, "metadata"))


@given(st.text())
def test_whatever_is_found_storable_encodes(text: str) -> None:
    if not list(unstorable(text, "body")):
        assert "\0" not in text
        assert text.encode().decode() == text
