"""The logs of programs, taken in and looked through for lessons: a person's words teach, and nobody else's."""

import shutil
from pathlib import Path

import pytest

from app.intake.sessions.browse import SessionFilters
from app.recall.cues.cue import AGENT, PERSON
from app.storage.tenants.workspace import Workspace
from app.wiring import Services


async def _lessons(services: Services, workspace: Workspace, path: Path) -> dict[str, list[tuple[str, str]]]:
    """Takes a path in; returns the trust and the lesson of each cue, by the id of its session."""
    finished = await services.ingestions.ingest(workspace, [path])
    logs = [outcome for outcome in finished.outcomes if not outcome.path.endswith("LICENSE")]
    assert [outcome.reason for outcome in logs if outcome.reason or outcome.skipped] == []
    page = await services.sessions.page(workspace, filters=SessionFilters(), limit=50)
    found = dict[str, list[tuple[str, str]]]()
    for item in page:
        await services.extraction.extract_session(workspace, item.session_id)
        cues = await services.cues.of_source(workspace, item.source_id)
        found[item.session_id] = [(cue.trust, cue.lesson) for cue in cues]
    return found


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("09-queued-mid-turn-message/session.jsonl", ["orders table directly", "staging database, never production"]),
        ("11-codex-newer-rollouts/a-items-only.jsonl", ["only from the branch stable"]),
        ("11-codex-newer-rollouts/b-mirrored.jsonl", ["only from the branch stable"]),
        ("11-codex-newer-rollouts/c-compacted.jsonl", ["only from the branch stable"]),
        ("11-codex-newer-rollouts/d-legacy-events.jsonl", ["only from the branch stable"]),
        ("12-gemini-session/session-2026-06-01T09-00-0d120000.json", ["resize in the request"]),
        ("12-gemini-session/session-2026-06-01T09-00-0d120001.jsonl", ["resize in the request"]),
        ("13-claude-ai-export/conversations.json", ["number of dogs in a letter"]),
    ],
)
async def test_a_persons_correction_is_a_cue_whatever_program_writes_it(
    services: Services, workspace: Workspace, shared_data: Path, tmp_path: Path, case: str, told: list[str]
) -> None:
    log = Path(shutil.copy(shared_data / "field-dev" / case, tmp_path))
    cues = [cue for found in (await _lessons(services, workspace, log)).values() for cue in found]
    missed = [words for words in told if not any(words in lesson for trust, lesson in cues if trust == PERSON)]
    assert (missed, [lesson for _, lesson in cues if "Never wait for it again" in lesson]) == ([], [])


async def test_a_subagents_orders_teach_nothing(
    services: Services, workspace: Workspace, shared_data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "projects"
    shutil.copytree(shared_data / "field-dev/10-subagent-is-not-the-user/projects", folder)
    found = await _lessons(services, workspace, folder)
    main = "0b100000-0000-4000-8000-000000000010"
    assert found == {main: [], f"{main}/a77f": []}
    shown = await services.sessions.get(workspace, f"{main}/a77f")
    assert [item.role for item in shown.messages] == ["caller", "assistant"]


async def test_the_sessions_of_a_real_project_are_stored_and_teach_by_their_people(
    services: Services, workspace: Workspace, shared_data: Path
) -> None:
    logs = shared_data / "real-logs-dev/logs/cipher-box"
    if not logs.is_dir():
        pytest.skip(f"the real logs are not at {logs}")
    found = await _lessons(services, workspace, logs)
    assert len(found) == 9
    door = [(trust, lesson) for cues in found.values() for trust, lesson in cues]
    assert {trust for trust, _ in door} <= {PERSON, AGENT}
    assert [lesson for _, lesson in door if "<" in lesson[:1] or "objective" in lesson.lower()[:12]] == []
