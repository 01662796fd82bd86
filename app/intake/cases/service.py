"""The verbs of cases: their judgements, histories and notes, and the texts that tell these."""

import asyncio
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from app.errors import EmbeddingUnavailable, NotFound
from app.foundation.db.database import Database, again_after_deadlock
from app.foundation.db.session import Across, Session
from app.foundation.models.protocols import EmbeddingProvider, Matrix, TokenCounter, Vector
from app.foundation.text.prose import sentences_of
from app.foundation.text.scores import versions_in
from app.foundation.values import frozen
from app.intake.cases import store
from app.intake.cases.cases import CaseHistory, CaseIssue, CaseVersion, assemble_history, number_issues, statements
from app.intake.cases.issue import SENTENCE
from app.intake.cases.judgement import CALIBRATION, CASE, FACET, OPEN, RECURRING, REOPENED, RESOLVED, SILENT, case_key
from app.intake.cases.store import CaseSummary, KnownCase
from app.storage.index.indexing import reindex_memories
from app.storage.index.vectors import embedded_text
from app.storage.links.store import forget_found
from app.storage.memories import changes, sources
from app.storage.memories import store as memories
from app.storage.memories.gate import screen_memory
from app.storage.memories.memory import DELETED, TAG_LIMIT, MemoryRow, NewMemory, SourceReference, content_hash
from app.storage.memories.service import LARGEST_PAGE, check_limit
from app.storage.memories.write import write
from app.storage.tenants.workspace import Workspace

_FEWEST_VERSIONS = 2
"""Versions from which a case has notes."""
_FEW = 3
"""Versions that are named one by one; more are a range."""
_VERSIONS_SHOWN, _ISSUES_SHOWN = 12, 20
_SUMMARY_CHARACTERS, _STATEMENT_CHARACTERS, _ADVICE_CHARACTERS = 140, 240, 400
_FEW_WORDS = 10
"""A sentence of so few words that names versions says only where an issue was seen, as its state does."""


def score_text(history: CaseHistory) -> str:
    """Returns the score history in words, a line each version; empty where fewer than two versions have a score."""
    if not (shown := score_range(history)):
        return ""
    scored = [version for version in history.versions if version.score is not None]
    return "\n".join(
        [f"{shown}; the latest first:", *(_line(version) for version in reversed(scored[-_VERSIONS_SHOWN:]))]
    )


def score_range(history: CaseHistory) -> str:
    """Returns between which scores a case was judged, and where it passed; empty for fewer than two scores."""
    scored = [version for version in history.versions if version.score is not None]
    if len(scored) < _FEWEST_VERSIONS:
        return ""
    scores = [version.score or 0.0 for version in scored]
    head = f"{len(scored)} judged versions, scores from {min(scores):.1f} to {max(scores):.1f} of 10"
    return "; ".join(filter(None, (head, _passes(scored))))


def _passes(scored: Sequence[CaseVersion]) -> str:
    """Returns between which scores the pass mark lies."""
    passing = min((item for item in scored if item.passed), key=lambda item: item.score or 0.0, default=None)
    failing = max((item for item in scored if item.passed is False), key=lambda item: item.score or 0.0, default=None)
    named = [("lowest score that passed", passing), ("highest that failed", failing)]
    return ", ".join(f"{name} {item.score:.1f} ({item.version})" for name, item in named if item is not None)


def _line(version: CaseVersion) -> str:
    said = textwrap.shorten(_sentences(version.summary, _SUMMARY_CHARACTERS, 2), _SUMMARY_CHARACTERS, placeholder=" …")
    return ". ".join(filter(None, (f"- {_judgement_text(version)}", said.rstrip(". "))))


def _judgement_text(version: CaseVersion) -> str:
    date = f" ({version.judged_at.date().isoformat()})" if version.judged_at else ""
    change = f" ({version.change:+.1f})" if version.change is not None else ""
    score = "no score" if version.score is None else f"{version.score:.1f}{change}"
    passed = {True: "passed", False: "failed", None: ""}[version.passed]
    return ", ".join(filter(None, (f"{version.version}{date}: {score}", version.verdict or passed or version.grade)))


def _sentences(text: str, characters: int, most: int) -> str:
    """Returns the first sentences of a text, at least one."""
    said = ""
    for sentence in sentences_of(text)[:most]:
        if said and len(said) + len(sentence) > characters:
            break
        said = f"{said} {sentence}".strip()
    return said


def issues_text(history: CaseHistory) -> str:
    """Returns the issues in words, an item each; empty where none is open or resolved, or no version is judged.

    First those that are open, then the advice of the latest judgement, what resolved earlier ones, and the rest.
    """
    if not history.versions or all(issue.status == SILENT for issue in history.issues):
        return ""
    judged = [item for item in history.versions if item.score is not None or item.verdict] or history.versions[-1:]
    advice = _sentences(judged[-1].advice, _ADVICE_CHARACTERS, 9)
    lines = {
        state: [issue_line(issue) for issue in history.issues if issue.status in states]
        for state, states in ((OPEN, (OPEN, REOPENED)), (RESOLVED, (RESOLVED,)), (SILENT, (SILENT,)))
    }
    given = [f"- Advice in {judged[-1].version}: {advice}"] if advice else []
    shown = [*lines[OPEN][:_ISSUES_SHOWN], *given, *lines[RESOLVED], *lines[SILENT]]
    before = (item for item in history.versions if item is not judged[-1])
    earlier = [f"{item.version} {item.score:.1f}" for item in before if item.score is not None]
    scores = f" Earlier scores: {', '.join(earlier[-_VERSIONS_SHOWN:])}." if earlier else ""
    head = f"{history.title}, latest judged version {_judgement_text(judged[-1])}.{scores}"
    return "\n".join([head, *shown[: max(_ISSUES_SHOWN, len(lines[OPEN][:_ISSUES_SHOWN]) + len(given))]])


def issue_line(issue: CaseIssue) -> str:
    """Returns an issue in one item: `- TAM without methodology: reopened in v8, P1, in v3, v5 and v8. No input …`."""
    earlier = f" after being {issue.resolution}" if issue.status == REOPENED and issue.resolved_in else ""
    facts = ", ".join(filter(None, (f"{issue.state}{earlier}", issue.severity, _versions_phrase(issue.versions))))
    return ". ".join(filter(None, (f"- {issue.title}: {facts}", _latest(issue) if issue.is_open else "")))


def _versions_phrase(versions: Sequence[str]) -> str:
    if len(versions) > _FEW:
        return f"in {versions[0]} to {versions[-1]} ({len(versions)} versions)"
    return f"in {' and '.join(filter(None, (', '.join(versions[:-1]), versions[-1])))}" if versions else ""


def _latest(issue: CaseIssue) -> str:
    """Returns the words of the newest version that states an issue, where they say more than its title."""
    latest = issue.versions[-1] if issue.versions else ""
    newest = [item for item in issue.occurrences if item.status == OPEN and item.version == latest]
    item = max(newest, key=lambda item: len(item.detail), default=None)
    if item is None:
        return ""
    repeated = item.title.casefold() == issue.title.casefold() or item.detail.startswith(item.title)
    title = "" if repeated else f"{item.title}. "
    said = (sentence for sentence in SENTENCE.split(f"{title}{item.detail}") if not _only_places(sentence))
    return _sentences(" ".join(said), _STATEMENT_CHARACTERS, 2)


def _only_places(sentence: str) -> bool:
    return len(sentence.split()) <= _FEW_WORDS and next(versions_in(sentence), "") != ""


_MOST_EMBEDDED = 4_000
"""Vectors of titles that a process keeps: 6 MB at 384 dimensions. A case of 30 versions with 10 issues each is matched
in 0.09 s after a new judgement, and took 0.3 without."""
_embedded: dict[tuple[str, str], Vector] = {}
_ATTEMPTS = 3
"""To match a case whose judgements change meanwhile; then the next job does."""


@frozen
class Cases:
    """The judged test cases of a database."""

    database: Database
    provider: EmbeddingProvider
    counter: TokenCounter
    mask_secrets: bool = True

    async def match(self, workspace: Workspace) -> list[UUID]:
        """Matches the issues of cases that have new judgements; returns the notes of their history that have changed.

        Notes of cases that have no judgement any more are retired.

        Raises:
            EmbeddingUnavailable: the titles of issues cannot be embedded now; what is left is matched another time.
        """
        async with self.database.session(workspace, transaction=False) as session:
            names = await store.pending(session)
        changed: list[UUID] = []
        for name in names:
            for _ in range(_ATTEMPTS):
                notes = await self._match(workspace, name)
                if notes is not None:
                    changed += notes
                    break
        async with self.database.session(workspace) as session:
            await memories.retire(session, await store.idle_notes(session))
        return changed

    async def workspaces_to_match(self, across: Across) -> Sequence[int]:
        """Returns the workspaces that have cases with new judgements."""
        async with across(transaction=False) as session:
            return await store.pending_of_all(session)

    async def page(self, workspace: Workspace, *, limit: int = LARGEST_PAGE) -> Sequence[CaseSummary]:
        """Returns the test cases that were judged, the latest judged first.

        Raises:
            InvalidInput: a limit out of range.
        """
        check_limit(limit)
        async with self.database.session(workspace, reading=True) as session:
            return await store.cases(session, limit=limit)

    async def get(self, workspace: Workspace, case: str) -> CaseHistory:
        """Returns the history of a test case, named in any spelling; matches issues that no worker has matched yet.

        Raises:
            NotFound: nothing in the workspace was judged under this name.
        """
        name = case_key(case)
        async with self.database.session(workspace, reading=True) as session:
            known = await store.case(session, name)
        if not known.judgements:
            raise NotFound(f"there is no judged case {case!r} in workspace {workspace.name}")
        numbers = known.numbers
        if not known.matched:
            try:
                numbers = await self._numbers(name, known)
            except EmbeddingUnavailable:
                numbers = await asyncio.to_thread(number_issues, name, known.judgements)
        return await asyncio.to_thread(assemble_history, name, known.judgements, numbers)

    async def _match(self, workspace: Workspace, name: str) -> list[UUID] | None:
        """Matches a case; returns its changed notes, and None if its judgements have changed meanwhile."""
        async with self.database.session(workspace, transaction=False) as session:
            known = await store.case(session, name)
        numbers = await self._numbers(name, known)
        history = await asyncio.to_thread(assemble_history, name, known.judgements, numbers)
        notes = await asyncio.to_thread(self._notes, history, workspace)

        async def attempt() -> list[UUID] | None:
            async with self.database.session(workspace) as session:
                now = await store.case(session, name, locked=True)
                if [item.judgement_id for item in now.judgements] != [item.judgement_id for item in known.judgements]:
                    return None
                await store.write_issues(session, history, known)
                # A case that has lost its judgements needs no source for its notes; idle notes are retired afterwards.
                return await _keep(session, name, notes) if now.judgements else []

        return await again_after_deadlock(attempt)

    async def _numbers(self, name: str, known: KnownCase) -> Mapping[tuple[UUID, int], UUID]:
        forms = [issue.forms for _, _, issue in statements(known.judgements)]
        vectors = (
            [await _vectors(self.provider, texts) for texts in zip(*forms, strict=True)]
            if self.provider.enabled
            else ()
        )
        return await asyncio.to_thread(number_issues, name, known.judgements, *vectors)

    def _notes(self, history: CaseHistory, workspace: Workspace) -> Sequence[MemoryRow | None]:
        """Returns the notes of a case: its score history, and its issues; None for one that has nothing to say.

        A case of one version has none: what was judged tells as much, and a note beside it takes its place.
        """
        is_told = len(history.versions) >= _FEWEST_VERSIONS
        texts = {
            "score history and scoring patterns": score_text(history),
            "known and recurring issues": issues_text(history) if is_told else "",
        }
        return [
            self._note(history, place, f"{history.title}: {what}", body, workspace) if body else None
            for place, (what, body) in enumerate(texts.items())
        ]

    def _note(self, history: CaseHistory, place: int, title: str, body: str, workspace: Workspace) -> MemoryRow | None:
        source = SourceReference(kind="other", uri=f"{CASE}{history.case}", title=f"history of {history.title}")
        facet = (CALIBRATION, RECURRING)[place]
        memory = NewMemory(
            kind="note",
            title=title,
            body=body,
            source=source,
            ordinal=place,
            tags=(history.case[:TAG_LIMIT], facet),
            metadata={FACET: facet, "case": history.case},
        )
        passed = screen_memory(memory, mask=self.mask_secrets)
        if passed.objection is not None:
            return None
        tokens = self.counter.count(embedded_text(passed.memory.title, passed.memory.body))
        return MemoryRow(memory=passed.memory, source_id=None, language=workspace.language, tokens=tokens)


async def _vectors(provider: EmbeddingProvider, titles: Sequence[str]) -> Matrix:
    """Embeds texts; those that this process has embedded lately are not embedded again."""
    model = provider.model_id
    known = {title: _embedded[model, title] for title in titles if (model, title) in _embedded}
    new = list(dict.fromkeys(title for title in titles if title not in known))
    if new:
        known |= {title: row.copy() for title, row in zip(new, await provider.embed_documents(new), strict=True)}
    for title, vector in known.items():
        # The latest ones stand at the end.
        _embedded.pop((model, title), None)
        _embedded[model, title] = vector
    for key in list(_embedded)[:-_MOST_EMBEDDED]:
        del _embedded[key]
    return np.stack([known[title] for title in titles])


async def _keep(session: Session, name: str, notes: Sequence[MemoryRow | None]) -> list[UUID]:
    """Keeps the notes of a case in place of those that were kept; returns those that say something else now.

    A note keeps its id and its ratings.
    """
    reference = next((row.memory.source for row in notes if row is not None), None)
    if reference is None:
        reference = SourceReference(kind="other", uri=f"{CASE}{name}")
    found = await sources.ensure(session, [reference])
    source_id = found[reference.kind, reference.uri]
    latest, changed = await store.notes(session, source_id), list[UUID]()
    for place, row in enumerate(notes):
        memory_id, retired_as = latest.get(place, (None, None))
        if row is None:
            await memories.retire(session, [] if memory_id is None or retired_as else [memory_id])
        elif memory_id is None or retired_as not in {None, DELETED}:
            changed += [row.memory_id]
            await write(session, [replace(row, source_id=source_id)])
        elif retired_as is None and await _says_anew(session, memory_id, row):
            changed += [memory_id]
    return changed


async def _says_anew(session: Session, memory_id: UUID, row: MemoryRow) -> bool:
    """Gives a note its new text; returns whether it is new."""
    memory = await memories.get(session, memory_id)
    if memory is None or memory.body == row.memory.body:
        return False
    digest = content_hash(NewMemory(kind=memory.kind, title=memory.title, body=row.memory.body), memory.language)
    anew = replace(memory, body=row.memory.body, tokens=row.tokens)
    await changes.extend(session, anew, content_hash=digest, facts=())
    await reindex_memories(session, [memory_id])
    await forget_found(session, [memory_id])
    return True
