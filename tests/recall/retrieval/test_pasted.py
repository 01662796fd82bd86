"""What a request asks is told from the log, code or document that is pasted beside it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from app.recall.retrieval.rank.pasted import LEAST_PASTED, need_of

QUESTION = "Why does the nightly import of the price list fail?"
TASK = "Review the release notes for claims that nobody ever measured"
PROMPT = (
    "You are Director of a team of three agents. Draw up a plan for the next experiment on missed appointments. "
    "The customer thinks of a bigger ensemble. At most 200 words."
)
KEYWORDS = "price list, decimal comma"
SIZE = 60_000


def server_log(size: int) -> str:
    """Returns the log of a server."""
    begin = datetime(2026, 6, 18, 3, tzinfo=UTC)
    moments = (begin + timedelta(seconds=n) for n in range(size // 40))
    lines = [f"{at:%Y-%m-%dT%H:%M:%SZ} {('DEBUG', 'INFO')[at.second % 2]} GET /healthz {at:%S%M%H}" for at in moments]
    return "\n".join(lines)[:size]


def lines_of(name: str, size: int) -> str:
    """Returns lines that only their number tells from speech."""
    forms = {
        "table": lambda n: f"{n},supplier {n},{n * 3.1:.2f},open",
        "events": lambda n: f"Pod web-{n} restarted at minute {n} after the liveness probe on /healthz timed out.",
    }
    return "\n".join(map(forms[name], range(size // 20)))[:size]


def texts_in(folder: Path, pattern: str, size: int) -> str:
    """Returns so many characters of the files in a folder."""
    text = "\n\n".join(path.read_text() for path in sorted(folder.rglob(pattern))[:40])
    assert len(text) >= size
    return text[:size]


def around(asked: str, pasted: str) -> Sequence[str]:
    """Returns requests with the pasted text after, before and around what is asked."""
    middle = pasted.find("\n", len(pasted) // 2) + 1
    return [
        f"{asked}\n\n{pasted}",
        f"{asked}\n```\n{pasted}\n```",
        f"{pasted}\n\n{asked}",
        f"{pasted[:middle]}\n\n{asked}\n\n{pasted[middle:]}",
    ]


@pytest.mark.parametrize("size", [2_500, SIZE])
@pytest.mark.parametrize("asked", [QUESTION, TASK, PROMPT])
def test_a_log_beside_a_request_is_no_part_of_it(asked: str, size: int) -> None:
    for pasted in (server_log(size), lines_of("table", size), lines_of("events", size)):
        assert [need_of(request) for request in around(asked, pasted)] == [asked] * 4


@pytest.mark.parametrize("asked", [QUESTION, TASK, PROMPT])
def test_real_logs_and_judgements_beside_a_request_are_no_part_of_it(asked: str, shared_data: Path) -> None:
    logs = texts_in(shared_data / "real-logs-dev" / "logs", "*.jsonl", SIZE)
    judgements = texts_in(shared_data / "reports-scylla", "*.json", SIZE)
    for request in (*around(asked, logs), *around(asked, judgements)):
        assert need_of(request) == asked


@pytest.mark.parametrize("asked", [QUESTION, PROMPT])
@pytest.mark.parametrize(("tree", "pattern"), [("records-dev", "*.md"), ("real-trees-dev/rlm", "*.md")])
def test_the_request_at_an_end_of_a_real_document_is_found(
    asked: str, tree: str, pattern: str, shared_data: Path
) -> None:
    document = texts_in(shared_data / tree, pattern, SIZE)
    for request in around(asked, document)[:3]:
        need = need_of(request)
        assert asked in need
        assert len(need) < len(asked) + 2 * LEAST_PASTED


def test_a_request_in_keywords_is_found_at_either_end() -> None:
    for request in around(KEYWORDS, server_log(SIZE))[:3]:
        assert need_of(request).startswith(KEYWORDS)


def test_the_faults_of_a_log_tell_what_a_request_without_a_subject_is_about() -> None:
    fault = "ValueError: could not convert '3,5' to a number"
    request = f"Why does this fail?\n\n{server_log(5_000)}\n2026-06-18T04:00:00Z {fault}"
    assert need_of(request) == f"Why does this fail?\n{fault}"


@pytest.mark.parametrize(
    "request_",
    [
        "What does this mean?\n```\nValueError: 3,5\n```",
        "A task of many sentences. " * 60,
        "word " * 100,
        "\n".join(f"- point {n}" for n in range(30)),
        "",
    ],
)
def test_a_request_without_much_pasted_text_stays_whole(request_: str) -> None:
    assert need_of(request_) == request_


@pytest.mark.parametrize("sign", ["\n ", "\n", "x", "> ", "#", '" ', "a ", "1.2.", "<!--", "`", "```\n"])
def test_any_text_gives_a_short_need(sign: str) -> None:
    need = need_of(f"{sign * (300_000 // len(sign))}?")
    assert 0 < len(need) <= 4 * LEAST_PASTED


async def test_an_answer_is_the_same_with_a_log_around_the_question(client: httpx.AsyncClient) -> None:
    lesson = "The nightly import of the price list fails when a supplier sends a decimal comma."
    others = [f"Pod web-{n} restarted after the liveness probe on /healthz timed out." for n in range(20)]
    for body in (lesson, *others):
        answer = await client.post("/api/memories?wait=true", json={"kind": "note", "body": body})
        assert answer.status_code == 200, answer.text

    async def history(query: str, *, activate: bool) -> str:
        answer = await client.post("/api/history", json={"query": query, "activate": activate})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["markdown"])

    alone = await history(QUESTION, activate=False)
    assert lesson in alone
    for request in around(QUESTION, server_log(SIZE)):
        assert await history(request, activate=False) == alone
        assert await history(request, activate=True) == alone
