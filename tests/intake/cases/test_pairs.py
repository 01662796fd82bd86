"""Observations are found by their task, queries and tags, and two of one task come as a pair."""

import pytest

from app.foundation.db.database import Database
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.intake.runs.observations import store as traces
from app.intake.runs.observations.observation import Outcome
from app.recall.retrieval.recall import Hit, Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.service import Embedder
from app.storage.links import lookup
from app.storage.links.relations import SAME_TASK, Task, of_one_task
from app.storage.memories.memory import NewMemory, ObservationDetail, new_id
from app.storage.memories.remember import WriteGate
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.conftest import link_pending

SURVEYS = {
    "batching": "Continuous batching raises throughput 4.2 times at the same hardware, because sequences leave a batch "
    "as soon as they end. Latency of the first token grows by 18 %.",
    "quantization": "Four-bit GPTQ halves the memory of the weights at 0.3 points of perplexity. AWQ keeps outliers in "
    "16 bits, which costs 6 % of speed on older cards.",
}
TASK = "LLM inference cost optimization"
OTHERS = (
    ("Tea in China: channels", "Marketplaces sell 37 % of all packs; tea houses sell premium oolong only."),
    ("Veterinary costs in Brazil", "Costs of clinics rose by 9.4 % in five cities; insurers follow a year later."),
    ("Registration of supplements", "State registration takes 60 to 90 days and needs laboratory tests."),
)


async def store(
    database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace, *tasks: str
) -> None:
    given = [*zip(tasks, SURVEYS.values(), SURVEYS, strict=True), *((*item, "market") for item in OTHERS)]
    memories = [
        NewMemory(
            kind="observation",
            title=task,
            body=body,
            tags=(tag,),
            observation=ObservationDetail(task=task, queries=(f"{tag} benchmarks vLLM",)),
        )
        for task, body, tag in given
    ]
    await WriteGate(database=database, counter=counter, runs=traces).remember(workspace, memories)
    await Embedder(database=database, provider=provider).embed_pending(workspace)
    await link_pending(database, workspace)


@pytest.mark.parametrize("angles", [("", ""), (": batching", ": quantization")], ids=["one task", "two angles"])
@pytest.mark.parametrize("asked", SURVEYS)
async def test_two_observations_of_one_task_come_as_a_pair(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    workspace: Workspace,
    angles: tuple[str, str],
    asked: str,
) -> None:
    await store(database, provider, counter, workspace, *(f"{TASK}{angle}" for angle in angles))
    hits = await found(database, provider, workspace, f"{asked} of LLM inference", k=2)
    assert {hit.body for hit in hits} == set(SURVEYS.values())
    assert hits[0].body == SURVEYS[asked]
    assert hits[1].link is not None
    assert hits[1].link.relation == SAME_TASK


async def test_an_old_observation_of_the_same_task_is_linked(
    database: Database,
    provider: EmbeddingProvider,
    counter: TokenCounter,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookup, "TASKS_COMPARED", 1)
    await store(database, provider, counter, workspace, TASK, TASK)
    _, second = await found(database, provider, workspace, "batching of LLM inference", k=2)
    assert second.link is not None
    assert second.link.relation == SAME_TASK


async def found(
    database: Database, provider: EmbeddingProvider, workspace: Workspace, text: str, k: int = 3
) -> list[Hit]:
    recall = await Retrieval(database=database, provider=provider).search(workspace, Query(text=text, k=k))
    return list(recall.hits)


async def test_an_observation_is_found_by_its_task_its_queries_and_its_tags(
    services: Services, database: Database, provider: EmbeddingProvider, counter: TokenCounter, workspace: Workspace
) -> None:
    outcome = Outcome(
        task="Prüfbericht Quartalszahlen Nordwind",
        queries=("Umsatz Vorquartal Segmente",),
        tags=("windkraft-analyse",),
        output="Turbine sales fell by 12 % to 310 million euros, and the service business grew by 7 %.",
    )
    observation_id = await services.observations.request(workspace, outcome)
    await services.observations.make(workspace, observation_id)
    await store(database, provider, counter, workspace, *SURVEYS)
    for text in (outcome.task, outcome.queries[0], "windkraft-analyse"):
        first, *_ = await found(database, provider, workspace, text)
        assert "Turbine sales" in first.body
    await Memories(database=database).tag(workspace, ids=[first.memory.memory_id], tag="repowering")
    tagged, *_ = await found(database, provider, workspace, "repowering")
    assert tagged.memory.memory_id == first.memory.memory_id
    await Memories(database=database).tag(workspace, ids=[first.memory.memory_id], tag="repowering", remove=True)
    assert await found(database, provider, workspace, "repowering") == []


def test_tasks_that_only_share_a_topic_are_not_one() -> None:
    def linked(one: str, other: str) -> bool:
        tasks = [Task(new_id(), one), Task(new_id(), other)]
        return bool(of_one_task({tasks[0].memory_id}, tasks))

    assert linked("Market report on BADs Russia v6", "Market report on BADs Russia v7")
    assert linked("Survey of LLM inference cost: batching", "Survey of LLM inference cost: quantization")
    assert not linked("Market report on tea in China", "Market report on coffee in Peru")
    assert not linked("Batching survey", "KV-cache reuse survey")
    assert not linked("v1", "v2")


def test_a_task_that_runs_each_day_links_few() -> None:
    tasks = [Task(new_id(), "Daily summary of incidents") for _ in range(100)][::-1]
    links = of_one_task({tasks[0].memory_id}, tasks)
    # Ids of one millisecond are in no order, and a link leads from the greater to the smaller one.
    linked = {memory_id for link in links for memory_id in link[:2]} - {tasks[0].memory_id}
    assert linked == {task.memory_id for task in tasks[1:5]}
