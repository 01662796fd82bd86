"""The gate through which every memory passes before it is stored. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.errors import Refused, told_apart
from app.injection import Finding, blocking, scan
from app.masking import masked_values
from app.memories.admission import reason_to_reject
from app.memories.gate import MEANINGS, worthless
from app.memories.memory import NewMemory

INVALID, INJECTION = "invalid", "injection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why a memory is not stored."""

    message: str
    """Names the field, what is wrong and the mend."""
    code: str
    """What statistics count it by."""
    details: tuple[dict[str, Any], ...] = ()

    def as_error(self) -> Refused:
        """The same as an error."""
        return Refused(*told_apart(self.message), reason=self.code, details=self.details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A memory as it may be stored."""

    memory: NewMemory
    objection: Objection | None = None
    findings: tuple[dict[str, Any], ...] = ()
    """What the injection scan found, by field; also what blocks nothing."""


def screened(memory: NewMemory, *, mask: bool) -> Screened:
    """The memory without its secrets, what was found in it, and why it must not be stored, if it must not."""
    reason = reason_to_reject(memory)
    if reason is not None:
        return Screened(memory=memory, objection=Objection(message=reason, code=INVALID))
    clean = _without_secrets(memory) if mask else memory
    # A turn of a conversation is kept as it was said; without it the others would stand beside the wrong neighbours.
    useless = None if memory.kind == "message" else worthless(clean.body)
    if useless is not None:
        return Screened(memory=clean, objection=Objection(message=f"body: {MEANINGS[useless]}", code=useless))
    found = tuple(_found(clean))
    blocked = [(field, finding) for field, findings in found for finding in blocking(findings)]
    details = tuple(as_detail(field, finding) for field, findings in found for finding in findings)
    if not blocked:
        return Screened(memory=clean, findings=details)
    return Screened(memory=clean, findings=details, objection=_injection(blocked, details))


def _injection(blocked: Sequence[tuple[str, Finding]], details: tuple[dict[str, Any], ...]) -> Objection:
    field, first = blocked[0]
    message = (
        f"{field}: characters {first.start} to {first.end} look like an instruction to the reader (rule {first.rule});"
        " quote it in a code block or a block quote if it is what you report on"
    )
    return Objection(message=message, code=INJECTION, details=details)


def _found(memory: NewMemory) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    texts = {"title": memory.title, "body": memory.body}
    if memory.source is not None:
        texts |= {"source.title": memory.source.title, "source.uri": memory.source.uri}
    if memory.observation is not None:
        texts |= {f"facts[{place}]": fact for place, fact in enumerate(memory.observation.facts)}
        if memory.observation.narrative not in memory.body:
            texts["narrative"] = memory.observation.narrative
    for field, text in (*texts.items(), *_leaves("tags", memory.tags), *_leaves("metadata", memory.metadata)):
        findings = scan(text)
        if findings:
            yield field, findings


def _leaves(field: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    """The texts of a JSON value, keys included, each with its place."""
    match value:
        case str():
            yield field, value
        case Mapping():
            for key, item in value.items():
                yield field, key
                yield from _leaves(f"{field}.{key}", item)
        case list() | tuple():
            for place, item in enumerate(value):
                yield from _leaves(f"{field}[{place}]", item)


def as_detail(field: str, finding: Finding) -> dict[str, Any]:
    """A finding as it is stored and shown."""
    return {
        "field": field,
        "rule": finding.rule,
        "family": finding.family,
        "severity": finding.severity,
        "start": finding.start,
        "end": finding.end,
    }


def _without_secrets(memory: NewMemory) -> NewMemory:
    clean = masked_values(replace(memory, embedding=None))
    if (clean.title, clean.body) != (memory.title, memory.body):
        # A vector of other words than those that are kept is not theirs.
        return clean
    return replace(clean, embedding=memory.embedding)
