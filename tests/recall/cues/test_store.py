"""The store of cues beside other writers, other processes and other models."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.errors import EmbeddingUnavailable
from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, Matrix
from app.recall.cues import index, store
from app.recall.cues import vectors as stored_vectors
from app.recall.cues.activate import Activation, Activations, PlanAsked
from app.recall.cues.cue import NewCue
from app.recall.cues.service import Cues
from app.storage.index.reembed import ModelMoves
from app.storage.links.store import forget_similar_of_all
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import workspace_in
from tests.fakes.providers import Lent, Turned
from tests.recall.cues.test_activate import DAYS, DROP, INDENT, TABS, fired, stored

pytestmark = pytest.mark.meaning

CUES = [
    NewCue(kind="correction", trigger="database migration that removes a column", lesson="Deprecate the column first."),
    NewCue(kind="procedure", trigger="publishing a release", lesson="Tag it after the tests are green."),
]
PLAN = "drop the deprecated column in a database migration"


class Counting(Lent):
    """The real model, which notes the texts that it embeds, or is out."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        super().__init__(provider)
        self.texts: list[str] = []
        self.out = False

    async def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if self.out:
            raise EmbeddingUnavailable("the model is out")
        self.texts += texts
        return await super().embed_documents(texts)


def cues_by(services: Services, provider: EmbeddingProvider) -> Cues:
    return replace(services, provider=provider).cues


async def asked(services: Services, provider: EmbeddingProvider, workspace: Workspace, **given: Any) -> Activation:
    plan = PlanAsked(plan=PLAN, trial=True, **given)
    activations = Activations(database=services.database, provider=provider, counter=services.counter)
    return await activations.activate(workspace, plan)


async def embedded_again(services: Services, provider: EmbeddingProvider) -> int:
    return await cues_by(services, provider).embed_lacking(services.database.across)


async def test_a_text_is_embedded_once(services: Services, workspace: Workspace) -> None:
    counting = Counting(services.provider)
    cues = cues_by(services, counting)
    first = await cues.add(workspace, CUES)
    own = [text for text in counting.texts if text.startswith("publishing a release")]
    assert sorted(own) == sorted({*own})
    counting.texts.clear()
    again = await cues.add(workspace, [*CUES, replace(CUES[1], lesson="Announce it.")])
    assert again.ids[:2] == first.ids
    # The action types are embedded once in a process; everything else is of the third cue.
    assert set(counting.texts) == {"publishing a release", "publishing a release\nAnnounce it."}


async def test_cues_that_were_stored_without_the_model_are_embedded_when_it_answers(own_services: Services) -> None:
    workspace = await workspace_in(own_services.database, "w")
    counting = Counting(own_services.provider)
    counting.out = True
    kept = await cues_by(own_services, counting).add(workspace, CUES)
    found = await asked(own_services, own_services.provider, workspace)
    assert "2 cues have no vectors" in found.degraded
    assert found.cues[0].cue_id == kept.ids[0]
    assert {"words", "bias"} <= found.cues[0].explain.keys()
    with pytest.raises(EmbeddingUnavailable):
        await embedded_again(own_services, counting)
    counting.out = False
    assert await embedded_again(own_services, counting) == 2
    assert await embedded_again(own_services, counting) == 0
    found = await asked(own_services, own_services.provider, workspace)
    assert (found.degraded, "adapted" in found.cues[0].explain) == ("", True)


async def test_cues_are_embedded_again_after_a_change_of_the_model(own_services: Services) -> None:
    database, workspace = own_services.database, await workspace_in(own_services.database, "w")
    await own_services.cues.add(workspace, CUES)
    turned = Turned(own_services.provider)
    moves = ModelMoves(database=database, forget_similar=forget_similar_of_all, grace_seconds=0)
    await moves.reembed(database.across, turned)
    assert "no vectors of the served model" in (await asked(own_services, turned, workspace)).degraded
    assert await embedded_again(own_services, turned) == 2
    found = await asked(own_services, turned, workspace)
    assert (found.degraded, "together" in found.cues[0].explain) == ("", True)


async def test_cues_are_embedded_again_after_a_change_of_the_adapter(
    own_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = await workspace_in(own_services.database, "w")
    for module in (store, stored_vectors, index):
        monkeypatch.setattr(module, "VECTORS_VERSION", "+0")
    await own_services.cues.add(workspace, CUES)
    monkeypatch.undo()
    index._INDEXES.clear()
    assert "2 cues have no vectors" in (await asked(own_services, own_services.provider, workspace)).degraded
    assert await embedded_again(own_services, own_services.provider) == 2
    assert (await asked(own_services, own_services.provider, workspace)).degraded == ""


async def test_an_index_reads_what_another_process_wrote_and_nothing_else(
    services: Services, workspace: Workspace
) -> None:
    await services.cues.add(workspace, CUES)
    before = await services.cues.conflicts.indexes.of(workspace)
    assert await services.cues.conflicts.indexes.of(workspace) is before
    other = Database(services.database.url, pool_size=2)
    try:
        others = replace(services, database=other)
        await others.cues.add(workspace, [replace(CUES[0], lesson="Ask the owner of the table.")])
        assert len((await others.cues.conflicts.indexes.of(workspace)).known) == 3
    finally:
        await other.close()
    found = await asked(services, services.provider, workspace)
    told = [cue.lesson for cue in found.cues] + [cue.lesson for cue in found.nearly]
    assert "Ask the owner of the table." in told


async def test_two_edits_at_once_are_both_kept(client: httpx.AsyncClient) -> None:
    (cue,) = await stored(client, DROP)
    changes: list[dict[str, Any]] = [
        {"consequence": 0.3},
        {"scope": "user"},
        {"files": ["a.py"]},
        {"lesson": "Ask first."},
        {"confidence": 0.5},
    ]
    answers = await asyncio.gather(*(client.patch(f"/api/cues/{cue}", json=change) for change in changes))
    assert {answer.status_code for answer in answers} == {200}
    found = (await client.get(f"/api/cues/{cue}")).json()
    assert [found[name] for name in ("scope", "files", "lesson")] == ["user", ["a.py"], "Ask first."]
    assert (found["consequence"], found["confidence"]) == (pytest.approx(0.3), 0.5)


async def test_a_cue_that_holds_later_supersedes_later(client: httpx.AsyncClient) -> None:
    soon = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    old, new = await stored(client, {**INDENT, "evidence": DAYS[:1]}, {**TABS, "valid_from": soon})
    before = (await client.get(f"/api/cues/{old}")).json()
    assert (before["state"], before["superseded_by"]) == ("active", new)
    assert datetime.fromisoformat(before["valid_until"]) == datetime.fromisoformat(soon)
    assert [item["id"] for item in (await fired(client, "indent the Python code"))["cues"]] == [old]
    later = (datetime.now(UTC) + timedelta(days=31)).isoformat()
    then = await fired(client, "indent the Python code", as_of=later)
    assert [item["id"] for item in then["cues"]] == [new]


async def test_the_day_comes_on_which_the_newer_one_holds(services: Services, workspace: Workspace) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=1)
    old = NewCue(
        kind="preference",
        trigger="indenting Python code",
        lesson="Indent by four spaces.",
        valid_from=soon - timedelta(9),
    )
    new = replace(
        old, lesson="Indent by one tab.", details={"preferred_over": "indent by four spaces"}, valid_from=soon
    )
    first = (await services.cues.add(workspace, [old, new])).ids[0]
    assert isinstance(first, UUID)
    while (cue := await services.cues.get(workspace, first)).state == "active":  # noqa: ASYNC110 - its end is a moment
        await asyncio.sleep(0.1)
    assert (cue.state, cue.valid_until) == ("superseded", soon)


async def test_what_a_person_took_away_held_until_then(client: httpx.AsyncClient) -> None:
    (cue,) = await stored(client, DROP)
    await client.patch(f"/api/cues/{cue}", json={"state": "retired"})
    assert (await fired(client, "drop the column"))["cues"] == []
    then = await fired(client, "drop the column", as_of="2026-04-01T00:00:00Z")
    assert [item["id"] for item in then["cues"]] == [cue]
    earlier = await fired(client, "drop the column", as_of="2026-02-01T00:00:00Z")
    assert earlier["cues"] == []
