"""The verb that finds the faults of an installation, each with its remedy."""

import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from app.errors import PriorsError
from app.foundation.db.database import Database
from app.foundation.db.distribution import lacking_parts
from app.foundation.db.migrations import LEAST_SERVER, state
from app.foundation.db.pool import LOGIN_POWERS, SERVICE
from app.foundation.db.session import Session
from app.foundation.models.protocols import EmbeddingProvider
from app.foundation.models.providers import provider_from, read_stored_name
from app.operations.status import Overview
from app.settings import Settings, check_exposure
from app.storage.index import indexing, vectors
from app.storage.index.embedding import MOST_PASSAGES
from app.storage.index.models import MoveState, StoredModel, active_model, move_state
from app.storage.tenants import keys
from app.wiring import opened_database

OK, WARN, FAIL = "OK", "WARN", "FAIL"
_LEAST_PGVECTOR = (0, 8)
_LEAST_FREE_BYTES = 1_000_000_000
_BEYOND = f"""
SELECT count(*) FROM {{partition}} e JOIN memories m USING (workspace_id, memory_id)
WHERE e.passage = {MOST_PASSAGES - 1} AND e.ends < length(rtrim(m.body, E' \\n\\r\\t'))
"""  # noqa: S608 - numbers
"""Counts the memories whose text goes on after its last vector."""
_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary' ORDER BY 1, 2"
LOST_NODES = "SELECT nodename, nodeport, result FROM run_command_on_workers('SELECT 1') WHERE NOT success ORDER BY 1, 2"
_INVALID = "SELECT string_agg(indexrelid::regclass::text, ', ') FROM pg_index WHERE NOT indisvalid"
_RUSSIAN = "SELECT to_tsvector('russian', '«источники»') @@ 'источник'::tsquery"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    status: str
    """OK, WARN or FAIL."""
    subject: str
    message: str
    """The finding and, unless it is OK, the remedy."""


async def diagnose(settings: Settings) -> list[CheckResult]:
    """Runs all checks; returns faults as findings and does not raise them."""
    findings = [_exposure(settings), _disk(settings.data_dir)]
    try:
        async with opened_database(settings, pool_size=2) as (database, _):
            async for finding in _Checks(database, settings).find():
                findings.append(finding)  # noqa: PERF401 - those before an error are kept
    except PriorsError as error:
        findings.append(CheckResult(FAIL, "database", str(error)))
    return findings


def _judge(subject: str, fault: str, fine: str, *, status: str = WARN) -> CheckResult:
    """Returns the result of a check that found a fault, or "" for none."""
    return CheckResult(status, subject, fault) if fault else CheckResult(OK, subject, fine)


def _exposure(settings: Settings) -> CheckResult:
    try:
        check_exposure(settings)
    except PriorsError as error:
        return CheckResult(FAIL, "exposure", str(error))
    return CheckResult(OK, "exposure", f"serves on {settings.host}")


def _disk(folder: Path) -> CheckResult:
    there = next((path for path in (folder, *folder.absolute().parents) if path.exists()), Path("/"))
    free = shutil.disk_usage(there).free
    message = f"{free / 1e9:.1f} GB are free at {there}"
    remedy = "; free some, or set PRIORS_DATA_DIR elsewhere"
    return _judge("disk", message + remedy if free < _LEAST_FREE_BYTES else "", message)


_UNCOUNTED = "SELECT workspace_id, name FROM workspaces WHERE statistics_at IS NULL ORDER BY name"
_HAS_WORDS = "SELECT EXISTS (SELECT FROM lexical WHERE workspace_id = %(workspace_id)s)"


class _Checks(NamedTuple):
    """The checks of a database."""

    database: Database
    settings: Settings

    async def find(self) -> AsyncIterator[CheckResult]:
        """Yields the findings, each check's in its turn."""
        async with self.database.across() as session:
            yield await _server(session)
            fault = (
                "text beyond ASCII is not parsed well: make the database with LC_CTYPE C.UTF-8 or another UTF-8 locale"
            )
            fine = "text beyond ASCII is parsed and stemmed"
            yield _judge("words", "" if await session.value(_RUSSIAN) else fault, fine)
        revision, mend = await state(self.database)
        yield _judge("migrations", mend, f"at {revision}", status=FAIL)
        if mend:
            return
        async with self.database.across() as session:
            yield await _role(session)
            async for finding in _cluster(session):
                yield finding
            yield await self._keys(session)
            yield await _extension(session)
        yield await self._jobs()
        async for finding in self._model_findings():
            yield finding
        yield await self._statistics()

    async def _keys(self, session: Session) -> CheckResult:
        if self.settings.api_key or await keys.exist(session):
            return CheckResult(OK, "keys", "each request needs an API key")
        return CheckResult(
            OK, "keys", "programs on this machine need no API key, others cannot call: `priors key create`"
        )

    async def _jobs(self) -> CheckResult:
        found = await Overview(database=self.database).jobs()
        fault = (
            f"{found.failed:,} failed for good: the worker's log has the errors, procrastinate_jobs the rows"
            " (status `failed`); a running worker finds most of their work again within five minutes"
        )
        fine = f"none failed, {found.due:,} are due, {found.workers:,} workers run"
        return _judge("jobs", fault if found.failed else "", fine)

    async def _model_findings(self) -> AsyncIterator[CheckResult]:
        provider = provider_from(self.settings)
        if not provider.enabled:
            message = "embeddings are switched off; answers are by words alone (PRIORS_EMBEDDING_PROVIDER)"
            yield CheckResult(WARN, "model", message)
            return
        yield await _loads(provider)
        await provider.close()
        async with self.database.across() as session:
            stored = await active_model(session)
            if stored is not None:
                yield _same_model(provider, stored.name, stored.dimension)
            count = await indexing.pending_count(session)
            fault = f"{count:,} memories wait for a vector: a running worker embeds them, or `priors store backfill`"
            yield _judge("backfill", fault if count else "", "every memory has its vector")
            for finding in _model_change(await move_state(session)):
                yield finding
            if stored is not None:
                yield await _indexes(session, stored)
                yield await _long_texts(session, stored)

    async def _statistics(self) -> CheckResult:
        async with self.database.across() as session:
            uncounted = await session.rows(_UNCOUNTED)
        stale = [row.name for row in uncounted if await self._has_words(row.workspace_id)]
        fault = f"words were never counted in {', '.join(stale)}: a running worker does it, or `priors store backfill`"
        return _judge("statistics", fault if stale else "", "words are counted in every workspace")

    async def _has_words(self, workspace_id: int) -> bool:
        async with self.database.session(workspace_id, transaction=False) as session:
            return bool(await session.value(_HAS_WORDS))


async def _server(session: Session) -> CheckResult:
    version, shown = int(await session.value("SHOW server_version_num")), await session.value("SHOW server_version")
    fault = f"Postgres {shown}; 16 or newer is needed" if version < LEAST_SERVER else ""
    return _judge("database", fault, f"Postgres {shown} answers", status=FAIL)


async def _role(session: Session) -> CheckResult:
    powers = await session.one(LOGIN_POWERS)
    power = "a superuser" if powers.superuser else "a role that bypasses row-level security"
    fault = (
        f"{powers.login} is {power}, so only {SERVICE}, which it takes, keeps workspaces apart: name a plain role"
        " in PRIORS_DATABASE_URL"
    )
    return _judge("role", fault if powers.superuser or powers.bypasses else "", f"{powers.login} serves as {SERVICE}")


async def _cluster(session: Session) -> AsyncIterator[CheckResult]:
    """Yields what is found of a Citus cluster; nothing on one Postgres."""
    if not session.distributed:
        return
    lacking, nodes = await lacking_parts(session), await session.tuples(_NODES)
    lost = await session.tuples(LOST_NODES)
    if lacking:
        message = f"the nodes lack {', '.join(lacking)}: run `priors store distribute` while no service runs"
        yield CheckResult(FAIL, "cluster", message)
    for host, port, reason in lost:
        yield CheckResult(FAIL, "cluster", f"the coordinator does not reach {host}:{port}: {reason}; start that node")
    if not (lacking or lost):
        yield CheckResult(OK, "cluster", f"the store is distributed over {len(nodes)} nodes, and all of them answer")


async def _extension(session: Session) -> CheckResult:
    version = str(await session.value("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    is_old = tuple(int(part) for part in version.split(".")[:2]) < _LEAST_PGVECTOR
    fault = f"pgvector {version}; 0.8 or newer is needed: install it and run ALTER EXTENSION vector UPDATE"
    return _judge("pgvector", fault if is_old else "", version, status=FAIL)


async def _indexes(session: Session, model: StoredModel) -> CheckResult:
    fault = ""
    if invalid := await session.value(_INVALID):
        fault = f"invalid: {invalid}; `priors store backfill` builds vector indexes anew, others want REINDEX"
    elif crowded := await vectors.crowded_workspaces(session, model):
        fault = f"{len(crowded)} large workspaces have no vector index yet: `priors store backfill` builds it"
    return _judge("indexes", fault, "all are valid")


async def _long_texts(session: Session, model: StoredModel) -> CheckResult:
    count = await session.value(_BEYOND.format(partition=model.partition))
    fault = f"{count:,} memories are longer than {MOST_PASSAGES} passages: split them, the rest is found by words"
    return _judge("long texts", fault if count else "", f"none is longer than {MOST_PASSAGES} passages")


async def _loads(provider: EmbeddingProvider) -> CheckResult:
    try:
        await provider.start()
        await provider.embed_query("ready?")
    except PriorsError as error:
        return CheckResult(FAIL, "model", str(error))
    return CheckResult(OK, "model", f"{provider.model_id}, {provider.dimension} numbers a vector")


def _same_model(provider: EmbeddingProvider, name: str, dimension: int) -> CheckResult:
    is_like = (read_stored_name(provider.model_id)[0], provider.dimension) == (read_stored_name(name)[0], dimension)
    fault = f"stored vectors are of {name}, which serves until `priors store reembed` moves to {provider.model_id}"
    if not is_like:
        fault = (
            f"stored vectors are of {name} ({dimension} numbers), configured is {provider.model_id}"
            f" ({provider.dimension}): they are never compared, so configure the stored model, or move to this one with"
            " `priors store reembed`"
        )
    is_same = (provider.model_id, provider.dimension) == (name, dimension)
    fine = f"stored vectors are of {name}"
    return _judge("vectors", "" if is_same else fault, fine, status=WARN if is_like else FAIL)


def _model_change(state: MoveState) -> Iterator[CheckResult]:
    if (move := state.move) is not None:
        message = f"to {move.model.name}: {move.done:,} of {move.total:,} memories embedded"
        remedy = f"; it was broken off, and `{_reembed(move.model)}` goes on"
        yield _judge("model change", "" if move.in_progress else message + remedy, message)
    for name in state.retiring:
        message = f"{name} is no longer served: a running worker drops its vectors within minutes"
        yield CheckResult(WARN, "model change", message)


def _reembed(model: StoredModel) -> str:
    """Returns the command that moves the store to this model; a remote model's stored name begins with its provider."""
    stored, _ = read_stored_name(model.name)
    kind, _, name = stored.partition(":")
    provider = f"PRIORS_EMBEDDING_PROVIDER={kind} " if kind in {"openai", "ollama"} else ""
    return f"{provider}priors store reembed --model {name if provider else stored} --dimension {model.dimension}"
