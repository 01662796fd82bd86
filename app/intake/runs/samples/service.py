"""The verbs that make several compressions of one output, and give the memory the text of the chosen one."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from msgspec import structs

from app.errors import LLMUnavailable
from app.foundation.db.database import Database, hold_lease
from app.foundation.db.session import Session
from app.foundation.models.chat import Chat
from app.foundation.models.protocols import EmbeddingProvider, TokenCounter
from app.intake.runs.observations.compress import (
    REASON_CHARACTERS,
    SELECTIONS,
    compress_by_model,
    compression_prompt,
    extracts,
)
from app.intake.runs.observations.observation import Compressed, Outcome, cut_line, is_issue_fact, storable
from app.intake.runs.observations.service import (
    BeingCompressed,
    Observations,
    observation_memory,
    wait_for_maker,
)
from app.intake.runs.run import Recorded
from app.intake.runs.samples import store
from app.intake.runs.samples.store import OutputSample, Sampled, SamplesAsked, best_rated, new_ones
from app.storage.index.indexing import reindex_memories
from app.storage.index.vectors import embedded_text
from app.storage.links import store as links
from app.storage.memories import changes
from app.storage.memories import store as memories
from app.storage.memories.changes import RecompressedObservation
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import Memory, NewMemory, ObservationDetail, Screened, content_hash
from app.storage.tenants.workspace import Workspace

_ECHO = "the output has nothing that its run was not given"
_NO_MORE_EXTRACTS = "the rules choose no further different sentences from this output"
_NOTHING_NEW = "the language model's reply says the same as another sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The samples of outputs in a database."""

    database: Database
    observations: Observations
    provider: EmbeddingProvider
    counter: TokenCounter
    evaluator: str
    chat: Chat | None = None
    mask_secrets: bool = True

    async def make(self, workspace: Workspace, observation_id: UUID) -> Recorded:
        """Makes a requested observation and its samples now, or waits for the maker that already does.

        Raises:
            NotFound: no observation was requested under this id in this workspace.
        """
        return await wait_for_maker(lambda: self.make_pending(workspace, observation_id))

    async def make_pending(self, workspace: Workspace, observation_id: UUID) -> Recorded:
        """Makes a requested observation, and beside its compression the further samples that were asked for.

        What succeeds is stored; `shortfall` of the answer has the reasons for the rest. A second call makes nothing.

        Raises:
            NotFound: no observation was requested under this id in this workspace.
            BeingCompressed: another maker makes them.
            Unavailable: the request changed again and again meanwhile.
        """
        recorded = await self.observations.make_pending(workspace, observation_id)
        if not recorded.sampling:
            return recorded
        work = {"observation_id": observation_id}
        async with hold_lease(self.database, workspace, store.LEASE, work) as is_ours:
            if is_ours:
                await self._make(workspace, observation_id)
        recorded = await self.observations.get(workspace, observation_id)
        if recorded.sampling and not is_ours:
            raise BeingCompressed(f"samples of observation {observation_id} are being made; try again")
        return recorded

    async def _make(self, workspace: Workspace, observation_id: UUID) -> None:
        async with self.database.session(workspace, transaction=False) as session:
            wanted = await store.find_asked(session, observation_id)
            known = await self._stored_compressions(session, wanted.memory_id) if wanted and wanted.memory_id else []
        if wanted is None or not wanted.sampling:
            return
        outcome = None if wanted.objection else await self.observations.outcome_of(workspace, observation_id)
        sampled = Sampled(failures=(wanted.objection or _ECHO,))
        prompt = wanted.prompt or ""
        if outcome is not None:
            prompt = prompt or compression_prompt(outcome)
            sampled = await self._compress_again(outcome, prompt, known, wanted)
        async with self.database.session(workspace) as session:
            locked = await store.find_asked(session, observation_id, lock=True)
            if locked is not None and (locked.memory_id, locked.objection) == (wanted.memory_id, wanted.objection):
                await self._keep(session, wanted, sampled, prompt)

    async def _stored_compressions(self, session: Session, memory_id: UUID) -> list[Compressed]:
        """Returns the compressions of a memory's output that are stored: its samples, or else its own text."""
        found = await store.of_memory(session, memory_id)
        if found:
            return [_compression_of(item) for item in found]
        first = await store.first_of(session, memory_id)
        return [replace(first, facts=tuple(fact for fact in first.facts if not is_issue_fact(fact, self.evaluator)))]

    async def _compress_again(
        self, outcome: Outcome, prompt: str, known: Sequence[Compressed], wanted: SamplesAsked
    ) -> Sampled:
        """Makes the samples that are missing: by other draws of the language model, or by other selections."""
        outcome, room, last_seed = structs.replace(outcome, issues=()), wanted.samples - len(known), wanted.last_seed
        if room <= 0:
            return Sampled()
        if self.chat is None:
            made, failures = await extracts(outcome, self.provider, SELECTIONS), list[str]()
        else:
            seeds = range(last_seed + 1, last_seed + 1 + room)
            made, failures = await self._by_model(outcome, prompt, self.chat, seeds)
            last_seed = seeds[-1]
        screened = await asyncio.to_thread(lambda: [self._screen(outcome, item) for item in made])
        failures += [f"a sample is not stored: {item}" for item in screened if isinstance(item, str)]
        passed = [item for item in screened if isinstance(item, Compressed)]
        new = new_ones(passed, known, room)
        if self.chat is not None:
            failures += [_NOTHING_NEW] * (len(passed) - len(new))
        elif len(new) < room:
            failures.append(_NO_MORE_EXTRACTS)
        return Sampled(made=tuple(new), failures=tuple(failures), last_seed=last_seed)

    async def _by_model(
        self, outcome: Outcome, prompt: str, chat: Chat, variations: range
    ) -> tuple[list[Compressed], list[str]]:
        async def draw(variation: int) -> Compressed | str:
            try:
                return await compress_by_model(outcome, self.provider, chat, prompt, variation=variation)
            except LLMUnavailable as error:
                return str(error)

        drawn = await asyncio.gather(*map(draw, variations))
        return [item for item in drawn if isinstance(item, Compressed)], [
            item for item in drawn if isinstance(item, str)
        ]

    def _screen(self, outcome: Outcome, made: Compressed) -> Compressed | str:
        """Returns a compression after the gate, without its secrets, or the reason not to store it."""
        passed = screen_memory(observation_memory(outcome, made), mask=self.mask_secrets)
        detail = passed.memory.observation
        if passed.objection is not None or detail is None:
            return "" if passed.objection is None else passed.objection.message
        return replace(made, title=passed.memory.title, narrative=detail.narrative, facts=detail.facts)

    async def _keep(self, session: Session, wanted: SamplesAsked, sampled: Sampled, prompt: str) -> None:
        """Stores the new samples; the first one is the text that the memory has."""
        total = 0
        await store.note_seed(session, wanted.observation_id, sampled.last_seed)
        if wanted.memory_id is not None and not wanted.objection:
            await memories.lock(session, [wanted.memory_id])
            known = await self._stored_compressions(session, wanted.memory_id)
            new = new_ones(sampled.made, known, wanted.samples - len(known))
            total = len(known) + len(new)
            if new:
                await store.add(session, wanted.memory_id, [*known, *new], first=0)
                await changes.note_prompt(session, wanted.memory_id, prompt)
        await store.finish(session, wanted, "" if total >= wanted.samples else _shortfall(total, wanted, sampled))

    async def screen(self, workspace: Workspace, memory_id: UUID) -> Mapping[Compressed, Screened]:
        """Returns the texts that a memory may get from its samples, after the gate and with their tokens, by sample.

        `choose` takes them. The screening takes time, so it precedes the transaction that locks the memory.
        """
        async with self.database.session(workspace) as session:
            memory = await memories.get(session, memory_id)
            hidden = await self._hidden_samples(session, memory)
        return await asyncio.to_thread(lambda: {item: self._screen_text(item) for item in hidden.values()})

    async def choose(
        self,
        session: Session,
        memory_id: UUID,
        present: int,
        qualities: Mapping[int, int],
        screened: Mapping[Compressed, Screened],
    ) -> int:
        """Gives a memory the text of its best rated sample, the first among equals, in place of the `present` one.

        Returns the number of the sample whose text it has then. The memory stays as it is if another one has that text,
        or if the injection scan objects to it. The caller locks the memory. A sample that is not `screened`, because it
        or the issues of its memory changed meanwhile, is screened here.
        """
        best = best_rated(qualities)
        if best == present or not await self._show(session, memory_id, best, screened):
            return present
        return best

    async def _hidden_samples(self, session: Session, memory: Memory | None) -> dict[int, Compressed]:
        """Returns the samples whose text a memory does not have, by number, each with the memory's issues."""
        if memory is None or memory.observation is None:
            return {}
        issues = [fact for fact in memory.observation.facts if is_issue_fact(fact, self.evaluator)]
        hidden = [item for item in await store.of_memory(session, memory.memory_id) if not item.chosen]
        return {item.sample: _compression_of(replace(item, facts=(*item.facts, *issues))) for item in hidden}

    def _screen_text(self, sample: Compressed) -> Screened:
        detail = ObservationDetail(narrative=sample.narrative, facts=sample.facts)
        new = NewMemory(kind="observation", title=sample.title, body=sample.body, observation=detail)
        passed = screen_memory(new, mask=self.mask_secrets)
        tokens = self.counter.count(embedded_text(passed.memory.title, passed.memory.body))
        return replace(passed, tokens=tokens)

    async def _show(
        self, session: Session, memory_id: UUID, number: int, screened: Mapping[Compressed, Screened]
    ) -> bool:
        memory = await memories.get(session, memory_id)
        sample = (await self._hidden_samples(session, memory)).get(number)
        if memory is None or sample is None:
            return False
        if sample not in screened:
            screened = {sample: await asyncio.to_thread(self._screen_text, sample)}
        passed = screened[sample]
        detail = passed.memory.observation
        if passed.objection is not None or detail is None or not await _reword(session, memory, passed):
            return False
        fields = RecompressedObservation(detail.narrative, list(detail.facts), sample.compressor, sample.model, number)
        await changes.recompress(session, memory_id, fields)
        if memory.valid_until is None:
            await reindex_memories(session, [memory_id])
            await links.forget_found(session, [memory_id])
        return True


async def _reword(session: Session, memory: Memory, passed: Screened) -> bool:
    new = passed.memory
    reworded = replace(memory, title=new.title, body=new.body, tokens=passed.tokens)
    digest = content_hash(new, memory.language)
    return await changes.reword(session, reworded, content_hash=digest, findings=passed.findings)


def _compression_of(sample: OutputSample) -> Compressed:
    return Compressed(
        title=sample.title,
        narrative=sample.narrative,
        facts=sample.facts,
        compressor=sample.compressor,
        model=sample.model,
    )


def _shortfall(total: int, wanted: SamplesAsked, sampled: Sampled) -> str:
    """Returns how many samples there are and why there are no more, each reason once with its count."""
    counted = Counter(sampled.failures)
    reasons = "; ".join(reason if count == 1 else f"{count} times: {reason}" for reason, count in counted.items())
    return cut_line(storable(f"{total} of {wanted.samples} samples are stored: {reasons}"), REASON_CHARACTERS)
