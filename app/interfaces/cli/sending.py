"""Sends the files below paths to a service, as `priors ingest` takes those of its own machine in."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from priors_client import Client
from priors_client.models import SentFile

from app.foundation.values import frozen
from app.intake.reports import scan
from app.intake.reports.store import CHANGED, MOVED, NEW, UNCHANGED, Ingestion
from app.interfaces.cli.notes import Notes, change_notes, read_notes
from app.interfaces.cli.projects import state_folder

_PART_BYTES, _PART_FILES = 4_000_000, 200
"""Most bytes and files of one request, if a single file is not larger: a person sees how far it is."""

_STORED = frozenset({NEW, CHANGED, MOVED, UNCHANGED})
"""The outcomes after which the service has a file as it is here."""
_PAGE = 100


@dataclass(slots=True)
class _Parcel:
    """Files of one request."""

    files: list[SentFile] = field(default_factory=list)
    size: int = 0


class Delivery(NamedTuple):
    """Has the outcomes of the files that were sent, and names those that stay."""

    result: Ingestion
    kept: Sequence[str]
    """The paths of stored files below the given ones that are not on this machine, and stay: it did not send them."""


@frozen
class Sending:
    """Sends files to a workspace of a service, in parts."""

    client: Client
    language: str | None
    dry_run: bool
    max_file_bytes: int
    place: str
    """The name of the service and its workspace, as `place_name` returns it."""
    on_progress: Callable[[int, int, str], None]

    def send(self, paths: Sequence[Path]) -> Delivery:
        """Makes the store of the service hold the files below the paths as they are, and returns their outcomes.

        Only a file that this machine has sent, and nobody has changed since, is retired where it is gone here: another
        machine may have one of the same path.

        Raises:
            PriorsError: the service cannot be reached, or refuses; the files sent before stay.
        """
        found = scan.discover(paths)
        stored = self._stored_files()
        missing = self._missing_paths(found, stored)
        sent = read_notes(_notes_file(), self.place)
        gone = [uri for uri in missing if sent.get(uri) == stored[uri]]
        results = list[Ingestion]()
        for part in self._parts(found):
            results.append(self._send_part(files=part.files, gone=gone))
            done = sum(len(result.outcomes) for result in results)
            self.on_progress(done, len(found.files), part.files[-1].shown)
        moved = {outcome.reason for result in results for outcome in result.outcomes if outcome.status == MOVED}
        rest = {"failures": found.failures, "left_out": found.left_out, "roots": [str(root) for root in found.roots]}
        results.append(self._send_part(gone=[uri for uri in gone if uri not in moved], **rest))
        if not self.dry_run:
            self._note_sent(found, results)
        return Delivery(_join(results), [uri for uri in missing if uri not in gone and _is_below(uri, found.roots)])

    def _note_sent(self, found: scan.Discovery, results: Sequence[Ingestion]) -> None:
        """Notes which files this machine has sent, with the time at which the service changed each last."""
        stored, known = self._stored_files(), {str(file.shown): file.uri for file in found.files.values()}
        outcomes = chain.from_iterable(result.outcomes for result in results)
        sent = [known[outcome.path] for outcome in outcomes if outcome.status in _STORED and outcome.path in known]

        def add(noted: Notes) -> Notes:
            kept = {uri: noted[uri] for uri in noted if uri in stored}
            return {**kept, **{uri: stored[uri] for uri in sent if uri in stored}}

        change_notes(_notes_file(), self.place, add)

    def _send_part(self, **values: Any) -> Ingestion:  # noqa: ANN401 - fields of the request
        if self.language is not None:
            values["language"] = self.language
        answer = self.client.admin.batch_reports(**values, dry_run=self.dry_run)
        return msgspec.convert(msgspec.to_builtins(answer), Ingestion)

    def _stored_files(self) -> Mapping[str, str]:
        """Returns the paths of the stored files, with the time at which the service changed each last."""
        sources = self.client.admin.iter_sources(kind="report", limit=_PAGE)
        live = [source for source in sources if source.retired_at is None and source.uri.startswith("/")]
        return {source.uri: source.updated_at.isoformat() for source in live}

    def _missing_paths(self, found: scan.Discovery, stored: Iterable[str]) -> list[str]:
        """Returns the paths of stored files that are not on this machine."""
        there = {file.uri for file in found.files.values()}
        return scan.missing_paths([uri for uri in stored if uri not in there])

    def _parts(self, found: scan.Discovery) -> Iterator[_Parcel]:
        """Yields the files in parts; one that cannot be read is a failure of its own."""
        dates = scan.judged_on(found.files, max_bytes=self.max_file_bytes)
        part = _Parcel()
        for file in found.files.values():
            try:
                content = scan.read(file.path, max_bytes=scan.LOG_TIMES * self.max_file_bytes)
            except scan.UnreadableFile as error:
                found.failures[str(file.shown)] = str(error)
                continue
            if part.files and (part.size + len(content) > _PART_BYTES or len(part.files) >= _PART_FILES):
                yield part
                part = _Parcel()
            part.size += len(content)
            encoded = b64encode(content).decode()
            dated = dates.get(file.path)
            part.files.append(SentFile(path=str(file.path), shown=str(file.shown), content=encoded, dated=dated))
        if part.files:
            yield part


def _notes_file() -> Path:
    return Path(state_folder()) / "sent-files.json"


def _is_below(uri: str, roots: Sequence[Path]) -> bool:
    return any(Path(uri).is_relative_to(root) for root in roots)


def _join(results: Sequence[Ingestion]) -> Ingestion:
    """Returns the results of the parts as one."""
    return replace(
        results[-1],
        outcomes=list(chain.from_iterable(result.outcomes for result in results)),
        seconds=sum(result.seconds for result in results),
        pending=sum(result.pending for result in results),
        degraded=next(filter(None, (result.degraded for result in results)), ""),
        sliced={path: count for result in results for path, count in result.sliced.items()},
    )
