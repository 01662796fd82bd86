"""Finds the stored turn of each turn of a log, and puts both in one order: what the log no longer has stays. Pure."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import structs

from app.intake.sessions.prepare import VERSION, PreparedTurn
from app.storage.memories.sources import KnownPart

_NEAR = 20
"""Most turns between the same neighbours with which a changed one is compared."""
_LEAST_CHARACTERS = 20
"""Fewest characters of a text that is looked for in a longer one: "yes" and "go on" stand in many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTurn:
    """A stored turn, as far as it is compared at first."""

    part: KnownPart
    message_id: str
    digest: bytes
    at: datetime | None

    @property
    def stands(self) -> bool:
        """True for a turn that has its place in the session: a live one, or one that a person took away."""
        return self.part.live or self.part.barred

    @property
    def is_of_this_reader(self) -> bool:
        """True if the present version of the readers gave it."""
        return self.digest[:1] == bytes([VERSION])


class TurnText(NamedTuple):
    """The words and the tools of a stored turn."""

    role: str
    text: str
    tools: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTurn:
    """A turn of a log."""

    message_id: str
    digest: bytes
    at: datetime | None
    is_dated: bool
    """True if its time is its own, and not that of the turn before it."""
    prepared: PreparedTurn | None
    """None for a turn that was stored as it is when that was looked up."""


def _hash(turn: KnownTurn) -> bytes:
    return turn.part.content_hash


def _digest(turn: KnownTurn | GivenTurn) -> bytes:
    return turn.digest


def _content(turn: GivenTurn) -> bytes:
    return b"" if turn.prepared is None else turn.prepared.row.content_hash


class Stale(Exception):
    """A turn is no longer stored as it was when that was looked up."""


@dataclass(slots=True, kw_only=True)
class Merge:
    """The changes after which a session has the turns of a log, beside those that the log no longer has."""

    kept: list[tuple[KnownPart, PreparedTurn]] = field(default_factory=list)
    """Stored turns of the same text of which something else changes."""
    new: list[PreparedTurn] = field(default_factory=list)
    retired: list[UUID] = field(default_factory=list)
    """Live turns that were replaced, or that nobody said."""
    replaced: list[tuple[UUID, UUID]] = field(default_factory=list)
    """Pairs of a turn and the one that it replaces."""
    moved: dict[UUID, int] = field(default_factory=dict)
    """The new ordinals of stored turns."""
    live: int = 0
    """Number of live turns afterwards."""
    missing: int = 0
    """Number of those that the log no longer has."""
    leads: bool = False
    """True if the first turn is one of the log, and not one that a person took away: the log may give the title."""

    @property
    def changes(self) -> bool:
        """True if anything is to be written."""
        return bool(self.kept or self.new or self.retired or self.moved)

    def stay(self, known: KnownTurn, ordinal: int) -> UUID:
        """Leaves a stored turn as it is, at this place."""
        self.live += known.part.live
        if known.part.ordinal != ordinal and known.stands:
            self.moved[known.part.memory_id] = ordinal
        return known.part.memory_id

    def take(
        self,
        given: GivenTurn,
        known: KnownTurn | None,
        ordinal: int,
        texts: Mapping[UUID, TurnText],
        *,
        is_last: bool,
    ) -> UUID:
        """Stores a given turn, the last of its log or not, at this place; returns its memory."""
        if known is not None and (known.part.barred or (known.part.live and known.digest == given.digest)):
            return self.stay(known, ordinal)
        turn = given.prepared
        if turn is None:
            raise Stale
        text = None if known is None else texts.get(known.part.memory_id)
        if known is not None and known.is_of_this_reader and _is_less(turn, text, is_last=is_last):
            return self.stay(known, ordinal)
        turn = replace(turn, row=replace(turn.row, memory=structs.replace(turn.row.memory, ordinal=ordinal)))
        if known is not None and _hash(known) == turn.row.content_hash:
            self.live += not known.part.live
            self.kept.append((replace(known.part, ordinal=ordinal), turn))
            return self.stay(known, ordinal)
        if known is not None and known.part.live:
            self.retired.append(known.part.memory_id)
            self.replaced.append((turn.row.memory_id, known.part.memory_id))
        self.live += 1
        self.new.append(turn)
        return turn.row.memory_id


def _text_of(turn: PreparedTurn) -> str:
    return turn.row.memory.body if turn.spoken is None else turn.spoken


def _contains(longer: str, shorter: str) -> bool:
    return len(shorter) >= _LEAST_CHARACTERS and shorter in longer


def _begin_alike(turn: PreparedTurn, stored: TurnText) -> bool:
    """Tells whether most of the shorter text is the beginning of the longer one; of one without words, its tool."""
    text = _text_of(turn)
    if not (text and stored.text):
        return bool(turn.tools and stored.tools) and stored.tools[0]["input"] == turn.tools[0].input
    shorter = min(len(text), len(stored.text))
    shared = next((place for place in range(shorter) if text[place] != stored.text[place]), shorter)
    return shared >= _LEAST_CHARACTERS and 2 * shared >= shorter


def _is_less(turn: PreparedTurn, stored: TurnText | None, *, is_last: bool) -> bool:
    """Tells whether a turn is a part of what is stored: it was read at an earlier moment, when less was written.

    Of the last turn of a log, what is half written may look otherwise than when it is whole.
    """
    if stored is None or len(turn.tools) > len(stored.tools):
        return False
    text = _text_of(turn)
    if is_last and len(text) < len(stored.text) and _begin_alike(turn, stored):
        return True
    tools = [(tool.name, tool.result) for tool in turn.tools]
    known = [(str(tool["name"]), str(tool["result"])) for tool in stored.tools]
    is_part = all(
        name == own and result in {"", told} for (name, result), (own, told) in zip(tools, known, strict=False)
    )
    return is_part and stored.text.startswith(text) and (tools, text) != (known, stored.text)


Key = Callable[[Any], Hashable]
"""Returns that by which a turn is known; an empty value for none."""


class SessionComparison:
    """The turns of a log beside the stored ones of its session.

    A turn is known by its id, or else by all that it says, or else by its text. Where a text has changed, a turn
    without an id is known by its place and its time, or because one text contains the other.
    """

    def __init__(
        self, known: Sequence[KnownTurn], given: Sequence[GivenTurn], unspoken: Sequence[GivenTurn] = ()
    ) -> None:
        """`unspoken` are the texts of the log that nobody said."""
        self._known = sorted(known, key=lambda turn: (not turn.stands, turn.part.ordinal, turn.part.memory_id))
        self._given = [*given, *unspoken]
        self._standing = range(sum(turn.stands for turn in known))
        """The places of the stored turns that have one in the session."""
        self._said = range(len(given))
        self._pairs = dict[int, int]()
        """The places of given turns and of their stored ones."""
        self._absorbed = dict[int, int]()
        """The places of stored turns whose text stands in a given one now, and of that one."""
        self._taken = set[int]()
        """The places of the stored turns of both."""

    def compare_identities(self) -> None:
        """Pairs turns by their ids, then by all that they say."""
        self._pair(lambda turn: turn.message_id, lambda turn: turn.message_id, known=self._standing)
        self._pair(_digest, lambda turn: turn.is_dated and turn.digest, known=self._standing)
        self._pair(_digest, _digest, known=self._standing, once=True)
        for known, given in self._gaps():
            if known and given:
                self._pair(_digest, _digest, given=given, known=known)

    def stored_as_they_are(self) -> set[int]:
        """Returns the places of the given turns that are stored as they are, or that a person took away."""
        pairs = ((place, self._known[stored]) for place, stored in self._pairs.items())
        return {
            place
            for place, known in pairs
            if known.part.barred or (known.part.live and known.digest == self._given[place].digest)
        }

    def is_lacking(self) -> bool:
        """Tells whether a live stored turn has no partner."""
        return any(self._known[stored].part.live for stored in self._free(self._standing))

    def compare_texts(self) -> None:
        """Pairs turns of the same text: of the same time, or that occur once, or between the same neighbours."""
        unspoken = range(len(self._said), len(self._given))
        self._pair(
            lambda turn: (turn.part.content_hash, turn.at),
            lambda turn: turn.is_dated and turn.prepared and (_content(turn), turn.at),
            given=self._said,
            known=self._standing,
        )
        self._pair(_hash, _content, given=self._said, known=self._standing, once=True)
        for known, given in self._gaps():
            if known and given:
                self._pair(_hash, _content, given=given, known=known)
        self._pair(_hash, _content, given=unspoken, known=self._standing)

    def compared_by_text(self) -> list[UUID]:
        """Returns the stored turns whose texts `compare_changes` and `merge` need."""
        pairs = ((self._given[place], self._known[stored]) for place, stored in self._pairs.items())
        changed = [known.part.memory_id for given, known in pairs if given.digest != known.digest]
        if all(place in self._pairs for place in range(len(self._given))):
            return changed
        return changed + [self._known[place].part.memory_id for place in self._free(self._standing)]

    def compare_changes(self, texts: Mapping[UUID, TurnText]) -> None:
        """Pairs turns whose text has changed: of the same speaker, between the same neighbours. What is left may be a
        text that went and comes back."""
        for known, given in self._gaps():
            if known and given:
                self._pair_last(given[0], known[0], texts)
            free = self._free(known)
            for place in given:
                self._pair_changed(place, free[:_NEAR], texts)
                if self._pairs.get(place) in free[:_NEAR]:
                    free.remove(self._pairs[place])
        for place in range(len(self._said), len(self._given)):
            older = [stored for stored in self._free(self._standing) if not self._known[stored].is_of_this_reader]
            self._pair_changed(place, older, texts)
        for known, given in self._gaps(with_ends=True):
            for stored in self._free(known)[:_NEAR]:
                self._absorb(stored, given[:_NEAR], texts)
        self._pair(_hash, _content, given=self._said, known=range(len(self._standing), len(self._known)))

    def _pair_changed(self, place: int, stored: Sequence[int], texts: Mapping[UUID, TurnText]) -> None:
        if place not in self._pairs:
            found = (one for one in stored if self._has_become(one, place, texts))
            if (first := next(found, None)) is not None:
                self._note(place, first)

    def _pair_last(self, place: int, stored: int, texts: Mapping[UUID, TurnText]) -> None:
        """Pairs two turns that follow the same one, if one is the last: it was read while it was being written."""
        prepared, text = self._given[place].prepared, texts.get(self._known[stored].part.memory_id)
        is_last = place == self._said[-1] or stored == self._standing[-1]
        is_free = place not in self._pairs and stored not in self._taken and self._may_be(place, stored)
        if not (is_last and is_free) or prepared is None or text is None or prepared.role != text.role:
            return
        if _begin_alike(prepared, text):
            self._note(place, stored)

    def _absorb(self, stored: int, given: Sequence[int], texts: Mapping[UUID, TurnText]) -> None:
        for place in given:
            if self._has_taken_in(place, stored, texts):
                self._absorbed[stored] = place
                self._taken.add(stored)
                return

    def _note(self, place: int, stored: int) -> None:
        self._pairs[place] = stored
        self._taken.add(stored)

    def merge(self, texts: Mapping[UUID, TurnText], *, at_end: bool = False) -> Merge:
        """Returns the changes; with `at_end` new turns stand after all others.

        Raises:
            Stale: a turn that was not prepared must be written.
        """
        found, last, absorbed = Merge(), -1, defaultdict[int, list[UUID]](list)
        for older, holder in self._absorbed.items():
            absorbed[holder].append(self._known[older].part.memory_id)
        order = list(self._order_of_stored() if at_end else self._order())
        for place, stored in order:
            known = None if stored is None else self._known[stored]
            ordinal = max(last + 1, known.part.ordinal if known is not None and known.stands else 0)
            last = ordinal
            if place is None and known is not None:
                found.stay(known, ordinal)
                found.missing += known.part.live
            elif place is not None:
                memory_id = found.take(self._given[place], known, ordinal, texts, is_last=place == self._said[-1])
                found.replaced += [(memory_id, older_id) for older_id in absorbed[place]]
        unspoken = [stored for place, stored in self._pairs.items() if place not in self._said]
        gone = [self._known[stored].part for stored in (*unspoken, *self._absorbed)]
        found.retired += [part.memory_id for part in gone if part.live]
        found.leads = bool(order) and self._leads(*order[0])
        return found

    def _leads(self, place: int | None, stored: int | None) -> bool:
        return place is not None and not (stored is not None and self._known[stored].part.barred)

    def _pair(
        self,
        of_known: Key,
        of_given: Key,
        *,
        known: Sequence[int],
        given: Sequence[int] | None = None,
        once: bool = False,
    ) -> None:
        """Pairs turns of the same key, the first with the first; with `once` those whose key occurs once in both."""
        pools, wanted = defaultdict[Hashable, deque[int]](deque), defaultdict[Hashable, list[int]](list)
        for stored in self._free(known):
            pools[of_known(self._known[stored])].append(stored)
        for place in range(len(self._given)) if given is None else given:
            if place not in self._pairs and (key := of_given(self._given[place])):
                wanted[key].append(place)
        for key, places in wanted.items():
            pool = pools[key]
            for place in () if once and not len(places) == len(pool) == 1 else places:
                if pool and self._may_be(place, pool[0]):
                    self._note(place, pool.popleft())

    def _may_be(self, place: int, stored: int) -> bool:
        """Tells whether a given turn may be a stored one: the same reader did not give them two ids."""
        one, other = self._given[place], self._known[stored]
        return (
            one.message_id == other.message_id
            or not (one.message_id and other.message_id)
            or not other.is_of_this_reader
        )

    def _has_become(self, stored: int, place: int, texts: Mapping[UUID, TurnText]) -> bool:
        """Tells whether a given turn is a stored one with another text."""
        given, known = self._given[place], self._known[stored]
        text = texts.get(known.part.memory_id)
        if text is None or given.prepared is None or not self._may_be(place, stored):
            return False
        said = _text_of(given.prepared)
        same_moment = given.is_dated and given.at == known.at
        return given.prepared.role == text.role and (
            same_moment or _contains(said, text.text) or _contains(text.text, said)
        )

    def _has_taken_in(self, place: int, stored: int, texts: Mapping[UUID, TurnText]) -> bool:
        """Tells whether a given turn, new or of another text than before, has the text of a stored one in its own."""
        prepared, text = self._given[place].prepared, texts.get(self._known[stored].part.memory_id)
        if prepared is None or text is None or not self._may_be(place, stored):
            return False
        paired = self._pairs.get(place)
        is_changed = paired is None or _hash(self._known[paired]) != prepared.row.content_hash
        return is_changed and prepared.role == text.role and _contains(_text_of(prepared), text.text)

    def _free(self, places: Sequence[int]) -> list[int]:
        return [place for place in places if place not in self._taken]

    def _gaps(self, *, with_ends: bool = False) -> list[tuple[range, range]]:
        """Returns the places of stored and of given turns between neighbouring pairs; `with_ends` with their turns."""
        ends = [(-1, -1), *self._anchors(), (len(self._standing), len(self._said))]
        found = list[tuple[range, range]]()
        for (stored, place), (next_stored, next_place) in pairwise(ends):
            given = self._said[max(place, 0) : next_place + 1] if with_ends else self._said[place + 1 : next_place]
            found.append((self._standing[stored + 1 : next_stored], given))
        return found

    def _anchors(self) -> list[tuple[int, int]]:
        """Returns the longest list of pairs of a stored and a given turn in the order of both sides."""
        pairs = [(self._pairs[place], place) for place in self._said if self._pairs.get(place, -1) in self._standing]
        ends, last, before = list[int](), list[int](), list[int]()
        for number, (stored, _) in enumerate(pairs):
            length = bisect_left(ends, stored)
            before.append(last[length - 1] if length else -1)
            ends[length : length + 1], last[length : length + 1] = [stored], [number]
        found, number = list[tuple[int, int]](), last[-1] if last else -1
        while number >= 0:
            found.append(pairs[number])
            number = before[number]
        return found[::-1]

    def _order_of_stored(self) -> Iterator[tuple[int | None, int | None]]:
        given = {stored: place for place, stored in self._pairs.items()}
        yield from ((given.get(stored), stored) for stored in self._standing)
        yield from ((place, None) for place in self._said if place not in self._pairs)

    def _order(self) -> Iterator[tuple[int | None, int | None]]:
        """Yields the places of all turns in their order: what only one side has by its time, stored turns first."""
        anchors = [*self._anchors(), (len(self._standing), len(self._said))]
        for (known, given), (stored, place) in zip(self._gaps(), anchors, strict=True):
            lacking, rest = deque(self._free(known)), deque(given)
            while lacking or rest:
                if rest and (not lacking or self._precedes(rest[0], lacking[0])):
                    yield rest[0], self._pairs.get(rest.popleft())
                else:
                    yield None, lacking.popleft()
            if place in self._said:
                yield place, stored

    def _precedes(self, place: int, stored: int) -> bool:
        one, other = self._given[place].at, self._known[stored].at
        return one is not None and other is not None and one < other
