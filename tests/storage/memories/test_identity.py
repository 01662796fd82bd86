"""Ids that sort by time, and hashes of what a memory says."""

from datetime import UTC, datetime

from msgspec import structs

from app.storage.memories.memory import NewMemory, content_hash, in_utc, new_id


def test_ids_are_version_7_and_sort_by_time() -> None:
    ids = [new_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert {(id_.version, id_.variant) for id_ in ids} == {(7, "specified in RFC 4122")}
    milliseconds = [id_.int >> 80 for id_ in ids]
    assert milliseconds == sorted(milliseconds)


def test_the_hash_covers_language_title_and_body_and_nothing_else() -> None:
    memory = NewMemory(kind="note", title="a", body="b")
    same = structs.replace(memory, tags=("t",), occurred_at=datetime(2026, 1, 1, tzinfo=UTC), final_score=9.0)
    assert content_hash(memory, "english") == content_hash(same, "english")
    assert content_hash(memory, "english") != content_hash(memory, "german")
    assert content_hash(memory, "english") != content_hash(structs.replace(memory, title="ab", body=""), "english")


def test_a_time_without_a_zone_is_utc() -> None:
    assert in_utc(datetime(2026, 1, 1)) == datetime(2026, 1, 1, tzinfo=UTC)  # noqa: DTZ001 - the case under test
