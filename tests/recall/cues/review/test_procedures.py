"""Procedures: the same acts in several sessions become one, which a person accepts, declines or takes back."""

from typing import Any

import httpx
import pytest

from app.intake.sessions.transcript import ToolUse, Turn
from app.recall.cues.commands import words_of_commands
from app.recall.cues.review.procedures import acts_of, command_name, kind_of, places_of, sequences_with
from tests.interfaces.http.calls import get, patch, post

STEPS = ["edit migrations/*.py", "run alembic upgrade head", "run make types", "run pytest"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("git commit -m 'Add tea'", "git commit"),
        ("FOO=1 uv run pytest tests/test_tea.py -q", "pytest"),
        ("python -m alembic upgrade head", "alembic upgrade head"),
        ("python scripts/release.py --dry-run", "python scripts/release.py"),
        ("/usr/bin/npm run build", "npm run build"),
        ("git status", ""),
        ("cat README.md", ""),
        ("select(.taskId)", ""),
    ],
)
def test_a_command_has_the_name_of_what_it_does(command: str, name: str) -> None:
    assert [command_name(words) for words in words_of_commands(command)] == [name]


def test_files_of_a_kind_have_one_name() -> None:
    assert kind_of("migrations/0003_tea.py") == kind_of("migrations/0004_milk.py") == "migrations/*.py"
    assert kind_of("docs/CHANGELOG.md") == "CHANGELOG.md"


def test_the_acts_of_a_turn_are_its_tools_and_not_its_words() -> None:
    edit = ToolUse(name="Edit", input={"file_path": "app/tea.py"})
    shell = ToolUse(name="shell", input={"command": ["bash", "-lc", "cd app && make types && git status"]})
    turns = [
        Turn(ordinal=0, role="user", text="I've updated the changelog. Run `make lint`."),
        Turn(ordinal=1, role="assistant", text="", tools=(ToolUse(name="Read"), edit, edit, shell)),
        Turn(ordinal=2, role="assistant", text="I've updated the changelog.\n\n```bash\ngit push origin main\n```"),
        Turn(ordinal=3, role="assistant", text="", tools=(ToolUse(name="Bash", input={"command": "git push"}),)),
    ]
    assert [(act.ordinal, act.name) for act in acts_of(turns)] == [
        (1, "edit app/*.py"),
        (1, "run make types"),
        (3, "run git push"),
    ]


def test_a_sequence_keeps_its_order_and_allows_other_acts_between() -> None:
    new = ("a", "x", "b", "c", "d")
    others = [("a", "b", "y", "z", "c"), ("u", "a", "b", "v", "c"), ("c", "b", "a")]
    (found,) = sequences_with(new, others)
    assert (found.steps, found.sessions) == (("a", "b", "c"), (0, 1, 2))
    assert sequences_with(new, [*others[:2], ("c", "b", "a"), ("b", "a", "c")]) == []
    assert places_of(("a", *"123456", "b", "a", "b"), ("a", "b")) == [0, 7]
    assert places_of(("a", *"1234567", "b"), ("a", "b")) is None


def run(command: str) -> dict[str, Any]:
    return {"name": "Bash", "input": {"command": command}}


def log(name: str, number: int, *between: str) -> dict[str, Any]:
    """A session in which a column is added, with other commands between."""
    write = {"name": "Write", "input": {"file_path": f"migrations/{number:04}_{name}.py", "content": "…"}}
    tools = [write, *map(run, ["alembic upgrade head", *between, "make types", "cat app/types.py", "pytest -q"])]
    messages = [
        {"role": "user", "text": f"add a column {name} to the table of teas"},
        {"role": "assistant", "text": "", "tools": tools},
    ]
    return {"id": name, "started_at": f"2026-03-0{number}T10:00:00Z", "messages": messages}


async def learn(client: httpx.AsyncClient, *given: dict[str, Any]) -> list[dict[str, Any]]:
    """Stores sessions, waits for their cues, and returns the procedures."""
    for session in given:
        await post(client, "/api/sessions?wait=true", session)
    cues = (await get(client, "/api/cues?kind=procedure"))["cues"]
    return [cue for cue in cues if cue["origin"] == "proposed"]


async def test_the_same_acts_in_three_sessions_are_proposed_and_decided(client: httpx.AsyncClient) -> None:
    assert await learn(client, log("milk", 1), log("sugar", 2, "npm ci")) == []
    (cue,) = await learn(client, log("lemon", 3, "git commit -m x", "npm ci"))
    assert (cue["state"], cue["trust"], cue["details"]["steps"]) == ("proposed", "agent", STEPS)
    assert cue["trigger"].startswith("add a column")
    proofs = {(proof["session"], proof["message"]) for proof in cue["evidence"]}
    assert proofs == {("milk", 1), ("sugar", 1), ("lemon", 1)}
    assert all(proof["turn_id"] and proof["quote"].startswith("Write migrations/") for proof in cue["evidence"])

    (fourth,) = await learn(client, log("mint", 4))
    assert (fourth["id"], len(fourth["evidence"])) == (cue["id"], 4)
    assert fourth["confidence"] > cue["confidence"]
    (proposal,) = await get(client, "/api/proposals")
    assert (proposal["change"], proposal["target_id"]) == ("procedure", cue["id"])
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "accepted"})
    accepted = await get(client, f"/api/cues/{cue['id']}")
    assert (accepted["state"], accepted["trust"]) == ("active", "person")
    await patch(client, f"/api/proposals/{proposal['id']}", {"state": "undone"})
    undone = await get(client, f"/api/cues/{cue['id']}")
    assert (undone["state"], undone["trust"]) == ("proposed", cue["trust"])
    (kept,) = await learn(client, log("honey", 5))
    assert (kept["id"], kept["state"]) == (cue["id"], "proposed")


async def test_a_procedure_that_too_few_sessions_support_is_withdrawn(client: httpx.AsyncClient) -> None:
    (cue,) = await learn(client, log("milk", 1), log("sugar", 2), log("lemon", 3))
    other = {**log("lemon", 3), "messages": [{"role": "user", "text": "never mind"}]}
    await client.delete(f"/api/sessions/{other['id']}")
    (left,) = await learn(client, other)
    assert (left["id"], left["state"], len(left["evidence"])) == (cue["id"], "retired", 2)
    assert (await get(client, "/api/proposals")) == []
