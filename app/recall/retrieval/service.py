"""The verbs that find (candidates are found, ranked, read and logged), and those that change roles."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from app.errors import EmbeddingUnavailable, NotFound, Refused, check
from app.foundation.db.database import Database
from app.foundation.db.session import Session
from app.foundation.models.bundled import DEFAULT_MODEL
from app.foundation.models.protocols import QueryEmbedder, Reranker, Vector
from app.foundation.safety.secrets import masked_values
from app.foundation.text.words import WORD, is_latin
from app.recall.retrieval.candidates import TOLERATED_PENDING, ArmQuery, lexical_hits, plans, question_of, survey
from app.recall.retrieval.explore import is_explored
from app.recall.retrieval.hits import found_hits
from app.recall.retrieval.log import UnloggedRecall, drawn_from, log, shown_of
from app.recall.retrieval.passages import NOTHING
from app.recall.retrieval.rank.needs import needs_of
from app.recall.retrieval.rank.roles import Role, role_reasons
from app.recall.retrieval.recall import HYBRID, LEXICAL, VECTOR, CheckedQuery, Query, Recall, checked_preset
from app.storage.index.models import StoredModel
from app.storage.index.reembed import speaking
from app.storage.index.vectors import as_literal
from app.storage.memories.gate import INJECTION, instruction_in
from app.storage.recalls.store import Degradation
from app.storage.tenants import store as tenants
from app.storage.tenants.service import get_or_create
from app.storage.tenants.workspace import Workspace, configuration
from app.tracing import span

_MASKED_AT_ONCE = 500
"""Characters of a query that are masked on the event loop: they take 0.03 ms, random tokens 0.5, at worst 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """Finds memories of a database, and keeps the roles by which they are ranked."""

    database: Database
    provider: QueryEmbedder
    reranker: Reranker | None = None
    """Scores the best hits again; None if none is configured."""
    mask_secrets: bool = True
    """True if the log has no secrets of a query."""
    explore: float = 0.0
    """Share of the recalls of runs in which a draw withholds the memory of one slot."""

    async def search(self, workspace: Workspace, query: Query) -> Recall:
        """Returns the memories that matter for a query, best first, logged as a recall.

        The log has no secrets of the query, unless they are not masked.

        Raises:
            InvalidInput: the query, its filters, preset or k is not valid.
            DatabaseUnavailable: the database does not answer.
        """
        finding = await self.find(workspace, query, spare=int(is_explored(self.explore, query)))
        slots, following = finding.hits[: query.k], finding.hits[query.k :]
        drawn = drawn_from(finding, slots, self.explore)
        if drawn is not None and drawn.withheld is not None and following and len(slots) > 1:
            drawn = drawn._replace(following=following[0])
        async with self.database.session(finding.workspace, transaction=False, at_node=True) as session:
            return await log(session, finding, hits=shown_of(slots, drawn), tokens=None, drawn=drawn)

    async def find(
        self, workspace: Workspace, query: Query, *, suspects: bool = True, passages: bool = False, spare: int = 0
    ) -> UnloggedRecall:
        """Does `search` without the log. While the query is embedded the database surveys and asks the lexical arm.

        Without `suspects`, a memory in which the injection scan suspects an instruction is no hit. With `passages` it
        returns MOST_READ hits or more, with their passages ranked. It returns `spare` hits more than the query wants.
        """
        started, provider = time.perf_counter(), self.provider
        is_measured = provider.model_id == DEFAULT_MODEL
        preset = checked_preset(query, workspace.weights, measured=is_measured)
        # A preset that judges all memories compares a text, which is no request.
        needs = (query.text,) if preset.judges_all else needs_of(query.text)
        asked = query if len(needs) == 1 else replace(query, text=" ".join(needs))
        is_measured = is_measured and is_latin(query.text)
        call = CheckedQuery(self.database, workspace, asked, preset, suspects, is_measured, passages, needs, spare)
        embedded, question, loggable = await asyncio.gather(
            _embed_needs(provider, call), _question(call), _loggable(query, mask=self.mask_secrets)
        )
        found = NOTHING
        mode, degraded = LEXICAL, _nothing_stored(workspace.name)
        if question is not None:
            question, degraded = await self._with_vectors(call, question, embedded, query.text)
            both = question.words is not None and call.preset.nearest is None
            mode = LEXICAL if question.vector is None else HYBRID if both else VECTOR
            found, missing = await found_hits(call, question, self.reranker)
            degraded = (*degraded, *missing)
        return UnloggedRecall(
            workspace=workspace,
            query=loggable,
            hits=found.hits,
            mode=mode,
            degraded=degraded,
            probability=found.probability,
            started=started,
            unlikely=found.unlikely,
        )

    async def _with_vectors(
        self, call: CheckedQuery, question: ArmQuery, embedded: "EmbeddedNeeds", text: str
    ) -> tuple[ArmQuery, tuple[Degradation, ...]]:
        """Returns a question with its vectors, if the stored vectors can be compared, and what is missing."""
        vectors, refusal = embedded
        model = question.survey.model
        provider = speaking(self.provider, model.name if model else None)
        if provider is not self.provider:
            # The database has just moved to another model, which is loaded already.
            vectors, refusal = await _embed_needs(provider, call)
        degraded = _degradations(provider, question, text, refusal)
        if vectors and not any(item.arm == VECTOR and item.silent for item in degraded):
            question = replace(question, vector=as_literal(vectors[0]), embedded=vectors)
        return question, degraded

    async def plans_of(self, recall: Recall) -> Mapping[str, str]:
        """Returns the plans by which Postgres answers the statements of a recall, by step; none has a value of it."""
        query, workspace = recall.query, recall.workspace
        call = CheckedQuery(self.database, workspace, query, checked_preset(query, workspace.weights), suspects=True)
        async with self.database.session(workspace, transaction=False) as session:
            question = await _survey(session, call)
            if question is None:
                return {}
            return await plans(session, replace(question, vector=None if recall.mode == LEXICAL else ""), query)

    async def save_role(self, workspace: Workspace, role: Role) -> Role:
        """Gives a workspace a role, in place of any of this name; secrets in it are masked.

        Raises:
            InvalidInput: a field cannot be taken, or the workspace has too many roles.
            Refused: the title of a part, which stands outside the fences of a section, looks like an instruction.
        """
        check(role_reasons(role, workspace.roles))
        for found in filter(None, (instruction_in(part.title) for part in role.parts)):
            message = f"looks like an instruction to the reader (rule {found.rule})"
            raise Refused("parts.title", message, reason=INJECTION)
        stored = masked_values(role) if self.mask_secrets else role
        target = await get_or_create(self.database, workspace)
        async with self.database.session(target) as session:
            await tenants.set_role(session, stored.name, msgspec.to_builtins(stored))
        return stored

    async def remove_role(self, workspace: Workspace, name: str) -> None:
        """Takes a workspace's own role away; one that every workspace has is as it was.

        Raises:
            NotFound: the workspace has no role of its own of this name.
        """
        if name not in workspace.roles:
            raise NotFound(f"workspace {workspace.name} has no role of its own called {name!r}")
        async with self.database.session(workspace) as session:
            await tenants.set_role(session, name, None)


EmbeddedNeeds = tuple[Sequence[Vector], str | None]
"""The vectors of a query and of its needs, or none and the reason."""


async def _embed_needs(provider: QueryEmbedder, call: CheckedQuery) -> EmbeddedNeeds:
    if not provider.enabled:
        return (), None
    try:
        with span("recall.embed"):
            return await asyncio.gather(*map(provider.embed_query, (call.query.text, *call.several))), None
    except EmbeddingUnavailable as error:
        return (), str(error)


async def _loggable(query: Query, *, mask: bool) -> Query:
    """Returns the query in the form that may be stored. A long query is masked in a thread."""
    if not mask:
        return query
    if len(query.text) > _MASKED_AT_ONCE:
        return await asyncio.to_thread(masked_values, query)
    return masked_values(query)


async def _question(call: CheckedQuery) -> ArmQuery | None:
    """Surveys the workspace and queries the lexical arm; returns None if the workspace has no memory."""
    async with call.database.session(call.workspace, reading=True, at_node=True) as session:
        question = await _survey(session, call)
        if question is None:
            return None
        with span("recall.lexical"):
            return replace(question, lexical_hits=await lexical_hits(session, question))


async def _survey(session: Session, call: CheckedQuery) -> ArmQuery | None:
    query = call.query
    language = None if query.language is None else configuration(query.language)
    with span("recall.survey"):
        known = await survey(session, query.text, filters=query.filters, language=language)
    if known is None or not known.live:
        return None
    return question_of(known, query, call.preset)


def _nothing_stored(workspace: str) -> tuple[Degradation, ...]:
    """Returns the reason why neither arm has anything to search; often the workspace's name is mistyped."""
    reason = f"the workspace {workspace!r} holds no memories"
    return tuple(Degradation(arm=arm, reason=reason, silent=True) for arm in (VECTOR, LEXICAL))


def _degradations(
    provider: QueryEmbedder, question: ArmQuery, query: str, refusal: str | None
) -> tuple[Degradation, ...]:
    known = question.survey
    vector = vector_degradation(provider, known.model, pending=known.pending, live=known.live, refusal=refusal)
    reason = "the query has no words besides stop words" if WORD.search(query) else "the query has no words"
    lexical = None if question.words else Degradation(arm=LEXICAL, reason=reason, silent=True)
    return tuple(item for item in (vector, lexical) if item is not None)


def vector_degradation(
    provider: QueryEmbedder, stored: StoredModel | None, *, pending: int, live: int, refusal: str | None = None
) -> Degradation | None:
    """Returns the degradation of the vector arm; None if it serves in full.

    `stored` is the model whose vectors the database serves, `pending` the number of the workspace's `live` memories
    that have none, `refusal` the reason why the query could not be embedded.
    """
    silent = None if refusal is None else f"the query could not be embedded: {refusal}"
    silent = silent or _mismatch(provider, stored)
    if silent is None and not pending:
        return None
    reason = f"{pending:,} of {max(live, pending):,} memories have no vector yet and are found by their words alone"
    is_silent = silent is not None or pending > TOLERATED_PENDING * live
    return Degradation(arm=VECTOR, reason=silent or reason, silent=is_silent)


def _mismatch(provider: QueryEmbedder, stored: StoredModel | None) -> str | None:
    """Returns the reason why stored vectors cannot be compared with the provider's; None if they can."""
    if not provider.enabled:
        return "embeddings are switched off (PRIORS_EMBEDDING_PROVIDER=noop)"
    if stored is None:
        return "no memory has been embedded yet; a worker does it, or `priors store backfill`"
    if stored.name != provider.model_id:
        return (
            f"the stored vectors are of {stored.name} and the configured model is {provider.model_id}; vectors"
            " of different models are never compared, so configure the stored one, or move with `priors store reembed`"
        )
    if stored.dimension != provider.dimension:
        return (
            f"the stored vectors of {stored.name} have {stored.dimension} numbers and the configured model gives"
            f" {provider.dimension}: set PRIORS_EMBEDDING_DIMENSION={stored.dimension}"
        )
    return None
