"""Decision records (ADRs) become cues: read by their headings, and kept in step with their files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from uuid import UUID

import pytest

from app.foundation.db.session import DECIDE
from app.intake.reports.record import role_of_passage
from app.recall.cues import store
from app.recall.cues.cue import Cue
from app.recall.cues.extraction.sections import ACCEPTED, DEPRECATED, SUPERSEDED, blocks_of, record_in
from app.recall.cues.why.why import REPLACED_BY
from app.recall.retrieval.recall import Query
from app.recall.retrieval.service import Retrieval
from app.storage.index.service import Embedder
from app.storage.memories.service import Memories
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from tests.growth import assert_linear

NYGARD = """# 7. Keep sessions in Postgres

Date: 2026-02-03

## Status

{status}

## Context

Sessions were lost whenever the cache was restarted.

## Decision

We will keep the sessions of users in Postgres instead of Redis,
because one backup then covers them.

## Consequences

A login takes 2 ms longer.
"""
MADR = """---
status: accepted
---
# Use Gradle as build tool

## Context and Problem Statement

Which build tool should be used?

## Considered Options

* [Maven](https://maven.apache.org/)
* Gradle
* Ant - the oldest of them

## Decision Outcome

Chosen option: "Gradle", because its build files are short.

## Pros and Cons of the Options

### Maven

* Good, because there are many plugins
* Bad, because it is verbose
"""
GERMAN = """# ADR 3: Nachrichten über NATS

* Status: ersetzt durch ADR-0009

## Kontext

Die Dienste rufen einander direkt auf.

## Entscheidung

Wir verwenden NATS für alle Nachrichten zwischen Diensten.

## Verworfene Alternativen

- Kafka: zu viel Betrieb für drei Dienste
- RabbitMQ

## Konsequenzen

Ein Dienst mehr.
"""
RUSSIAN = """# Хранить отчёты в S3

**Статус:** устарело

**Контекст.** Диск сервера заполняется за неделю.

**Решение.** Мы будем хранить отчёты в S3.

**Альтернативы.** Сетевой диск. Он медленный.
"""
BARE = """# 4. Logs

Our services currently write logs to files. Nobody finds anything in them.

Sending them by mail was considered, but would have filled the mailboxes. Another option was a shared disk.

We will send the logs of all services to Loki.

Searching takes a second, which is easier than before.
"""


@pytest.mark.parametrize("piece", ["<!-- ", "```\na\n", "- a\n\n```\na\n```\n"])
def test_the_blocks_of_a_record_cost_what_their_text_costs(piece: str) -> None:
    assert_linear(blocks_of, piece)


def test_a_comment_is_no_part_of_a_record() -> None:
    _, found = blocks_of("# Title\n\nOne <!-- a\n\nb --> two <!-- three --> four <!-- five\n")
    assert [block.text for block in found] == ["One  two  four <!-- five"]


@pytest.mark.parametrize(
    ("text", "path", "told"),
    [
        (NYGARD.format(status="Accepted"), "docs/adr/0007.md", ("Keep sessions in Postgres", ACCEPTED, ("Redis",))),
        (MADR, "build.md", ("Use Gradle as build tool", ACCEPTED, ("Maven", "Ant"))),
        (GERMAN, "a.md", ("Nachrichten über NATS", SUPERSEDED, ("Kafka", "RabbitMQ"))),
        (RUSSIAN, "a.md", ("Хранить отчёты в S3", DEPRECATED, ("Сетевой диск",))),
    ],
    ids=["nygard", "madr", "german", "russian"],
)
def test_each_template_gives_subject_state_and_alternatives(
    text: str, path: str, told: tuple[str, str, tuple[str, ...]]
) -> None:
    record = record_in(text, path)
    assert record is not None
    assert (record.cue.trigger, record.state, tuple(record.cue.details.get("alternatives", ()))) == told


def test_a_choice_comes_with_its_reason_and_a_reference_with_its_number() -> None:
    gradle, nats = record_in(MADR, "a.md"), record_in(GERMAN, "a.md")
    assert gradle is not None
    assert nats is not None
    assert (gradle.cue.details["choice"], gradle.cue.details["reasoning"]) == ("Gradle", "its build files are short")
    assert nats.superseded_by == (9,)
    assert nats.cue.lesson == "Wir verwenden NATS für alle Nachrichten zwischen Diensten."


def test_reports_and_templates_record_no_decision() -> None:
    assert record_in(BARE, "docs/adr/0004-logs.md") is None
    assert record_in("# Report\n\n## Context\n\nThe scout found no actors.\n", "docs/adr/README.md") is None
    template = MADR.replace('Chosen option: "Gradle"', 'Chosen option: "{title of option 1}"')
    assert record_in(template, "docs/adr/template.md") is None


class Records:
    """A folder of decision records and the workspace that they are ingested into."""

    def __init__(self, folder: Path, services: Services, workspace: Workspace) -> None:
        self.folder, self.workspace = folder / "docs" / "adr", workspace
        self.folder.mkdir(parents=True)
        self.services, self.database, self.reasons = services, services.database, services.reasons
        self.ingestions = replace(services.ingestions, max_file_bytes=100_000)

    async def ingested(self, **files: str) -> int:
        """Writes files, or deletes those without a text, ingests the folder, and returns the number of jobs done."""
        for name, text in files.items():
            path = self.folder / f"{name.removeprefix('_')}.md"
            path.write_text(text, encoding="utf-8") if text else path.unlink()
        await self.ingestions.ingest(self.workspace, [self.folder])
        async with self.database.across() as session:
            waiting = await session.column(
                "DELETE FROM procrastinate_jobs WHERE task_name = %(task)s RETURNING args ->> 'source_id'",
                {"task": DECIDE},
            )
        for source_id in sorted(waiting):
            await self.services.extraction.extract_decision(self.workspace, UUID(source_id))
        return len(waiting)

    async def cues(self) -> Mapping[str, Cue]:
        """Returns all cues by their triggers."""
        return {cue.trigger: cue for cue in await self.services.cues.page(self.workspace)}


@pytest.fixture
def adrs(tmp_path: Path, services: Services, workspace: Workspace) -> Records:
    return Records(tmp_path, services, workspace)


SESSIONS = "Keep sessions in Postgres"


async def test_an_ingested_record_is_a_cue_that_follows_its_file(adrs: Records) -> None:
    await adrs.ingested(_0007=NYGARD.format(status="Accepted"))
    (cue,) = (await adrs.cues()).values()
    assert (cue.kind, cue.trust, cue.origin, cue.state) == ("decision", "imported", "extracted", "active")
    assert cue.details["alternatives"] == ["Redis"]
    assert cue.details["reasoning"] == "one backup then covers them"
    (proof,) = cue.evidence
    (source,) = await Memories(database=adrs.database).list_sources(adrs.workspace)
    assert (proof.source_id, proof.memory_id is not None) == (source.source_id, True)
    assert proof.quote.startswith("We will keep the sessions of users in Postgres")
    assert await adrs.ingested() == 0

    await adrs.ingested(_0007=NYGARD.format(status="Accepted").replace("Redis", "Memcached"))
    (changed,) = (await adrs.cues()).values()
    assert (changed.cue_id, changed.details["alternatives"]) == (cue.cue_id, ["Memcached"])
    assert "Memcached" in changed.lesson

    assert await adrs.ingested(_0007="") == 1
    assert (await adrs.cues())[SESSIONS].state == "retired"


async def test_a_deprecated_record_is_retired_and_a_superseded_one_names_its_successor(adrs: Records) -> None:
    await adrs.ingested(_0007=NYGARD.format(status="Deprecated"))
    assert await adrs.cues() == {}
    newer = NYGARD.replace("# 7. Keep sessions in Postgres", "# 9. Keep sessions in Redis again")
    newer = newer.replace("keep the sessions of users in Postgres instead of Redis", "keep them in Redis")
    await adrs.ingested(_0007=NYGARD.format(status="Accepted"))
    await adrs.ingested(_0009=newer.format(status="Accepted\n\nSupersedes [7. Keep](0007.md)"))
    cues = await adrs.cues()
    assert cues[SESSIONS].state == "superseded"
    assert cues[SESSIONS].superseded_by == cues["Keep sessions in Redis again"].cue_id
    await adrs.ingested(_0007=NYGARD.format(status="Superseded by [9. Keep](0009.md)"))
    assert (await adrs.cues())[SESSIONS].superseded_by == cues["Keep sessions in Redis again"].cue_id


async def test_what_a_person_wrote_stays_when_the_file_changes(adrs: Records) -> None:
    await adrs.ingested(_0007=NYGARD.format(status="Accepted"))
    (cue,) = (await adrs.cues()).values()
    await adrs.services.cues.edit(
        adrs.workspace, cue.cue_id, {"lesson": "Sessions live in Postgres, backups cover them."}
    )

    await adrs.ingested(_0007=NYGARD.format(status="Accepted").replace("Redis", "Memcached"))
    (kept,) = (await adrs.cues()).values()
    assert (kept.cue_id, kept.lesson) == (cue.cue_id, "Sessions live in Postgres, backups cover them.")
    assert (kept.details["alternatives"], kept.edited) == (["Memcached"], ("lesson",))


async def test_the_evidence_of_a_record_names_its_file_and_section(adrs: Records) -> None:
    await adrs.ingested(_0007=NYGARD.format(status="Accepted"))
    (cue,) = (await adrs.cues()).values()
    (proof,) = cue.evidence
    assert (proof.session, proof.path.endswith("docs/adr/0007.md")) == ("", True)
    assert proof.section.endswith("Decision")
    found = await adrs.reasons.ask(adrs.workspace, subject="Why are the sessions of users in Postgres?")
    decided = next(item for item in found.reasons if item.text.startswith("We will keep the sessions of users"))
    assert (decided.ordinal, decided.kinds) == (None, ("decision",))
    assert f"# {proof.path}" in found.markdown
    assert "one backup then covers them" in found.markdown


QUEUE = """# 11. Queue of the importer

## Status

{status}

## Context

The importer forgets the files that wait when its process is killed. On 4 of 9 machines a night's files were lost, and
nobody saw it until a customer asked. Kafka would keep them, and needs three more servers. A table would keep them as
well, and a hundred files a minute are no load for it.

## Decision

{decision}

## Consequences

The backup has the queue as well.
"""


async def _why(adrs: Records, subject: str) -> str:
    intake, workspace = adrs.ingestions, adrs.workspace
    await Embedder(database=intake.database, provider=intake.provider).embed_pending(workspace)
    found = await adrs.reasons.ask(workspace, subject=subject)
    return found.markdown


async def test_a_question_in_the_words_of_the_context_is_answered_with_the_decision(adrs: Records) -> None:
    decision = "We use a table of our own database, with SKIP LOCKED, and one row a file."
    await adrs.ingested(_0011=QUEUE.format(status="Accepted", decision=decision))
    told = await _why(adrs, "Why did the importer forget the files that wait when its process was killed?")
    assert "a night's files were lost" in told
    assert decision in told
    assert "Accepted" in told


@pytest.mark.parametrize("section", ["Context", "Rationale"])
async def test_a_question_in_the_words_of_the_decision_is_answered_with_its_reason(adrs: Records, section: str) -> None:
    decision = "We use a table of our own database, with SKIP LOCKED, and one row a file."
    record = QUEUE.format(status="Accepted", decision=decision).replace("## Context", f"## {section}")
    if section != "Context":
        record = record.replace("## Decision", "## Context\n\nTwo colleagues asked for it in May.\n\n## Decision")
    await adrs.ingested(_0011=record)

    told = await _why(adrs, "Why SKIP LOCKED, with one row for each file, in our own database?")

    assert decision in told
    assert "a night's files were lost" in told
    assert "Two colleagues" not in told


async def test_a_rejected_record_comes_with_the_decision_of_the_one_that_its_status_names(adrs: Records) -> None:
    chosen = "We use a table of our own database, with SKIP LOCKED, and one row a file."
    await adrs.ingested(
        _0011=QUEUE.format(status="Rejected in favour of ADR 12", decision="We use Kafka with three brokers."),
        _0012=NYGARD.format(status="Accepted").replace(
            "We will keep the sessions of users in Postgres instead of Redis,\nbecause one backup then covers them.",
            chosen,
        ),
    )
    told = await _why(adrs, "Why did the importer forget the files that wait when its process was killed?")
    assert "Status, rejected in favour of ADR 12: Rejected in favour of ADR 12" in told
    assert chosen in told
    assert told.index(chosen) < told.index("Rejected in favour")
    assert "Sessions were lost whenever the cache was restarted." in told


async def test_a_passage_of_the_decision_stands_before_one_of_the_context(adrs: Records) -> None:
    words = "Sessions of users are kept in Postgres."
    text = QUEUE.format(status="Accepted", decision=words).replace(
        "A table would keep them as\nwell, and a hundred files a minute are no load for it.", words
    )
    await adrs.ingested(_0011=text)
    intake, workspace = adrs.ingestions, adrs.workspace
    await Embedder(database=intake.database, provider=intake.provider).embed_pending(workspace)
    found = await Retrieval(database=intake.database, provider=intake.provider).find(
        workspace, Query(text="Where are the sessions of users kept?", k=3), suspects=False, passages=True
    )
    passages = [
        (hit, item) for hit in found.hits for item in hit.passages if words in item.passage.passage.of(hit.body)
    ]
    ranks = {role_of_passage(hit.memory, item.passage.passage.start): item.score for hit, item in passages}
    assert ranks["decision"] > 1.1 * ranks["context"]


@pytest.mark.parametrize(
    ("state", "numbers"),
    [
        ("rejected in favour of ADR 12", ["12"]),
        ("superseded by [0012](0012-queue.md)", ["12"]),
        ("superseded by ADR-0012", ["12"]),
        ("deprecated since 3.1 (March 2026)", []),
        ("rejected on 12 May", []),
        ("withdrawn, 5 votes to 2", []),
    ],
)
def test_only_the_record_that_a_state_names_replaces_another(state: str, numbers: list[str]) -> None:
    assert REPLACED_BY.findall(state) == numbers


async def test_the_records_of_a_folder_are_not_those_of_one_whose_name_begins_alike(adrs: Records) -> None:
    await adrs.ingested(_0007=NYGARD.format(status="Accepted"))
    (first,) = (await adrs.cues()).values()
    adrs.folder = adrs.folder.with_name("adr-old")
    adrs.folder.mkdir()
    await adrs.ingested(_0008=MADR)
    async with adrs.database.session(adrs.workspace) as session:
        uris = await session.column(
            "SELECT uri FROM sources WHERE workspace_id = %(workspace_id)s AND kind = 'report' ORDER BY uri"
        )
        folders = [str(PurePosixPath(uri).parent) for uri in uris]
        found = [await store.records_in(session, folder) for folder in folders]
    assert [len(its) for its in found] == [1, 1]
    assert first.cue_id in {cue_id for its in found for cue_id in its.values()}
