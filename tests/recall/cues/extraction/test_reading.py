"""What the embedding model reads of a session, and what a session teaches where it does not read."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import LESSONS, Matrix
from app.intake.sessions.store import StoredMessage
from app.intake.sessions.transcript import ASSISTANT, USER, Transcript, Turn
from app.recall.cues.extraction.extract import extract
from app.recall.cues.extraction.extracting import Extraction
from app.recall.cues.signs import ALONE, READ, TurnModel, fitted_model, spoken_turns, texts_to_read, with_odds
from app.storage.memories.memory import new_id
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.fakes.providers import Hashed
from tests.recall.cues.extraction.test_extract import DROPPED, session

TURNS = [
    Turn(ordinal=0, role=USER, text="Render the list.\nRows come from the cache."),
    Turn(ordinal=1, role=ASSISTANT, text="I read them from   the API."),
    Turn(ordinal=2, role=USER, text="Fine."),
]


def test_a_sentence_is_read_with_its_turn_and_the_end_of_the_agents_turn_before() -> None:
    assert texts_to_read(spoken_turns(TURNS)) == [
        "Render the list. [SEP] person: Render the list. Rows come from the cache.",
        "Rows come from the cache. [SEP] person: Render the list. Rows come from the cache.",
        "Fine. [SEP] agent: I read them from the API. person: Fine.",
    ]


def test_each_sentence_of_a_person_has_its_own_odds() -> None:
    first, agents, last = with_odds(spoken_turns(TURNS), [1.0, 2.0, 3.0])

    assert [part.odds for part in (*first.sentences, *last.sentences)] == [1.0, 2.0, 3.0]
    assert {part.odds for part in agents.sentences} == {None}


def test_a_sentence_without_a_sign_teaches_only_where_it_was_read() -> None:
    spoken = with_odds(spoken_turns(TURNS), [-9.0, 9.0, -9.0])
    read = TurnModel(bias=0.0, shown=0.5, candidate=0.4, weights={"read": 1.0})
    alone = TurnModel(bias=9.0, shown=0.5, candidate=0.4, weights={})

    assert [cue.quote for cue in extract(spoken, read)] == ["Rows come from the cache."]
    assert extract(spoken, alone) == []


def test_the_models_differ_only_in_what_was_read() -> None:
    assert fitted_model(READ).weights.keys() - fitted_model(ALONE).weights.keys() == {"read"}
    assert fitted_model(READ).weights.keys() >= fitted_model(ALONE).weights.keys()


class Away(Hashed):
    """A provider whose model with an adapter cannot be loaded now."""

    async def embed_adapted(self, *_: object, **__: object) -> Matrix | None:
        raise EmbeddingUnavailable("its weights are being fetched")


class Reader(Hashed):
    """A provider that knows one lesson, and counts what it reads."""

    def __init__(self) -> None:
        self.read: list[str] = []

    async def embed_adapted(self, texts: Sequence[str], adapter: str, *, queries: bool) -> Matrix | None:
        if adapter != LESSONS:
            return None
        assert not queries, "they wait for documents"
        self.read += texts
        return np.array([[9.0 if text.startswith("Rows") else -9.0] for text in texts], np.float32)


def messages(*texts: str) -> list[StoredMessage]:
    """Returns the stored turns of a person and an agent by turns."""
    return [
        StoredMessage(
            memory_id=new_id(),
            ordinal=turn.ordinal,
            role=turn.role,
            text=turn.text,
            at=None,
            tools=(),
            suspect=False,
            quality=0,
            tags=(),
        )
        for turn in session(*texts)
    ]


def extraction_by(services: Services, other: Hashed) -> Extraction:
    """Returns the extraction whose sentences this provider reads."""
    return replace(services.extraction, cues=replace(services.cues, provider=other), odds={})


@pytest.mark.parametrize(
    ("other", "is_read"),
    [(Hashed(), True), (Away(), False)],
    ids=["a model without adapters", "a model that is away"],
)
async def test_where_no_model_reads_the_signs_find_the_lessons(
    services: Services, other: Hashed, *, is_read: bool
) -> None:
    found = await extraction_by(services, other)._read_spoken(messages(*DROPPED))

    assert found == (spoken_turns(session(*DROPPED)), is_read)
    assert extract(found[0])


async def test_a_session_that_grows_is_read_from_where_it_grew(services: Services) -> None:
    reader = Reader()
    extraction = extraction_by(services, reader)
    said = ("Render the list.\nRows come from the cache.", "Done.")

    first, _ = await extraction._read_spoken(messages(*said))
    then, _ = await extraction._read_spoken(messages(*said, "Fine."))

    read = [text.partition(" [SEP] ")[0] for text in reader.read]
    assert read == ["Render the list.", "Rows come from the cache.", "Fine."]
    assert [cue.quote for found in (first, then) for cue in extract(found)] == 2 * ["Rows come from the cache."]


async def test_a_session_that_was_not_read_is_read_again(services: Services, workspace: Workspace) -> None:
    await services.session_intake.take_in(workspace, Transcript(session_id="s", format="messages", turns=tuple(TURNS)))

    assert await extraction_by(services, Away()).extract_session(workspace, "s") == []
    assert len(await extraction_by(services, Reader()).extract_session(workspace, "s")) == 1
