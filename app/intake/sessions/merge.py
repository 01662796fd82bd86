"""Finds the stored turn of each turn of a log, and puts both in one order: what the log no longer has stays. Pure."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import structs

from app.foundation.values import frozen
from app.intake.sessions.prepare import VERSION, PreparedTurn
from app.storage.memories.sources import KnownPart

_NEAR = 20
"""Most turns between the same neighbours with which a changed one is compared."""
_LEAST_CHARACTERS = 20
"""Fewest characters of a text that is looked for in a longer one: "yes" and "go on" stand in many."""


@frozen
class KnownTurn(KnownPart):
    """A stored turn, as far as it is compared at first."""

    message_id: str
    digest: bytes
    at: datetime | None

    @property
    def stands(self) -> bool:
        """True for a turn that has its place in the session: a live one, or one that a person took away."""
        return self.live or self.barred

    @property
    def is_of_this_reader(self) -> bool:
        """True if the present version of the readers gave it."""
        return self.digest[:1] == bytes([VERSION])


class TurnText(NamedTuple):
    """The words and the tools of a stored turn."""

    role: str
    text: str
    tools: Sequence[Mapping[str, Any]]


@frozen
class GivenTurn:
    """A turn of a log."""

    message_id: str
    digest: bytes
    at: datetime | None
    is_dated: bool
    """True if its time is its own, and not that of the turn before it."""
    prepared: PreparedTurn | None
    """None for a turn that was stored as it is when that was looked up."""

    @property
    def content_hash(self) -> bytes:
        """The hash of its text; empty for a turn that is not prepared."""
        return b"" if self.prepared is None else self.prepared.row.content_hash


_IDENTITY, _DIGEST, _TEXT = attrgetter("message_id"), attrgetter("digest"), attrgetter("content_hash")
_TEXT_AND_TIME = attrgetter("content_hash", "at")
"""Keys by which a turn is known; an empty value is none."""


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
        self.live += known.live
        if known.ordinal != ordinal and known.stands:
            self.moved[known.memory_id] = ordinal
        return known.memory_id

    def take(
        self,
        given: GivenTurn,
        known: KnownTurn | None,
        ordinal: int,
        stored: TurnText | None,
        *,
        is_last: bool,
    ) -> UUID:
        """Stores a given turn, the last of its log or not, at this place, where `stored` was; returns its memory."""
        if known is not None and (known.barred or (known.live and known.digest == given.digest)):
            return self.stay(known, ordinal)
        turn = given.prepared
        if turn is None:
            raise Stale
        if known is not None and known.is_of_this_reader and _is_less(turn, stored, is_last=is_last):
            return self.stay(known, ordinal)
        turn = replace(turn, row=replace(turn.row, memory=structs.replace(turn.row.memory, ordinal=ordinal)))
        if known is not None and known.content_hash == turn.row.content_hash:
            self.live += not known.live
            self.kept.append((replace(known, ordinal=ordinal), turn))
            return self.stay(known, ordinal)
        if known is not None and known.live:
            self.retired.append(known.memory_id)
            self.replaced.append((turn.row.memory_id, known.memory_id))
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


class SessionComparison:
    """The turns of a log beside the stored ones of its session.

    A turn is known by its id, or else by all that it says, or else by its text. Where a text has changed, a turn
    without an id is known by its place and its time, or because one text contains the other.
    """

    def __init__(
        self, known: Sequence[KnownTurn], given: Sequence[GivenTurn], unspoken: Sequence[GivenTurn] = ()
    ) -> None:
        """`unspoken` are the texts of the log that nobody said."""
        self._known = sorted(known, key=lambda turn: (not turn.stands, turn.ordinal, turn.memory_id))
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
        self.texts: Mapping[UUID, TurnText] = {}
        """The texts of stored turns: those of `compared_by_text` are needed from `compare_changes` on."""

    def compare_identities(self) -> None:
        """Pairs turns by their ids, then by all that they say."""
        self._pair(_IDENTITY, range(len(self._given)), self._standing)
        self._pair(_DIGEST, self._places_with_time(self._given), self._standing)
        self._pair(_DIGEST, range(len(self._given)), self._standing, once=True)
        for known, given in self._gaps():
            self._pair(_DIGEST, given, known)

    def stored_as_they_are(self) -> set[int]:
        """Returns the places of the given turns that are stored as they are, or that a person took away."""
        pairs = ((place, self._known[stored]) for place, stored in self._pairs.items())
        return {
            place
            for place, known in pairs
            if known.barred or (known.live and known.digest == self._given[place].digest)
        }

    def is_lacking(self) -> bool:
        """Tells whether a live stored turn has no partner."""
        return any(self._known[stored].live for stored in self._free(self._standing))

    def compare_texts(self) -> None:
        """Pairs turns of the same text: of the same time, or that occur once, or between the same neighbours."""
        self._pair(_TEXT_AND_TIME, self._places_with_time(self._given[: len(self._said)]), self._standing)
        self._pair(_TEXT, self._said, self._standing, once=True)
        for known, given in self._gaps():
            self._pair(_TEXT, given, known)
        self._pair(_TEXT, range(len(self._said), len(self._given)), self._standing)

    def compared_by_text(self) -> list[UUID]:
        """Returns the stored turns whose texts `compare_changes` and `merge` need."""
        pairs = ((self._given[place], self._known[stored]) for place, stored in self._pairs.items())
        changed = [known.memory_id for given, known in pairs if given.digest != known.digest]
        if all(place in self._pairs for place in range(len(self._given))):
            return changed
        return changed + [self._known[place].memory_id for place in self._free(self._standing)]

    def compare_changes(self) -> None:
        """Pairs turns whose text has changed: of the same speaker, between the same neighbours. What is left may be a
        text that went and comes back."""
        for known, given in self._gaps():
            if known and given:
                self._pair_last(given[0], known[0])
            free = self._free(known)
            for place in given:
                self._pair_changed(place, free[:_NEAR])
                if self._pairs.get(place) in free[:_NEAR]:
                    free.remove(self._pairs[place])
        for place in range(len(self._said), len(self._given)):
            older = [stored for stored in self._free(self._standing) if not self._known[stored].is_of_this_reader]
            self._pair_changed(place, older)
        for known, given in self._gaps(with_ends=True):
            self._absorb(self._free(known)[:_NEAR], given[:_NEAR])
        self._pair(_TEXT, self._said, range(len(self._standing), len(self._known)))

    def _pair_changed(self, place: int, stored: Sequence[int]) -> None:
        if place not in self._pairs:
            found = (one for one in stored if self._has_become(one, place))
            if (first := next(found, None)) is not None:
                self._note(place, first)

    def _absorb(self, stored: Sequence[int], given: Sequence[int]) -> None:
        for one in stored:
            holder = next((place for place in given if self._has_taken_in(place, one)), None)
            if holder is not None:
                self._absorbed[one] = holder
                self._taken.add(one)

    def _pair_last(self, place: int, stored: int) -> None:
        """Pairs two turns that follow the same one, if one is the last: it was read while it was being written."""
        is_last = place == self._said[-1] or stored == self._standing[-1]
        is_free = place not in self._pairs and stored not in self._taken
        if is_last and is_free and (both := self._texts_of(place, stored)) and _begin_alike(*both):
            self._note(place, stored)

    def _note(self, place: int, stored: int) -> None:
        self._pairs[place] = stored
        self._taken.add(stored)

    def merge(self, *, at_end: bool = False) -> Merge:
        """Returns the changes; with `at_end` new turns stand after all others.

        Raises:
            Stale: a turn that was not prepared must be written.
        """
        found, last, absorbed = Merge(), -1, defaultdict[int, list[UUID]](list)
        for older, holder in self._absorbed.items():
            absorbed[holder].append(self._known[older].memory_id)
        order = list(self._order_of_stored() if at_end else self._order())
        for place, stored in order:
            known = None if stored is None else self._known[stored]
            ordinal = max(last + 1, known.ordinal if known is not None and known.stands else 0)
            last = ordinal
            if place is None and known is not None:
                found.stay(known, ordinal)
                found.missing += known.live
            elif place is not None:
                text = None if known is None else self.texts.get(known.memory_id)
                memory_id = found.take(self._given[place], known, ordinal, text, is_last=place == self._said[-1])
                found.replaced += [(memory_id, older_id) for older_id in absorbed[place]]
        unspoken = [stored for place, stored in self._pairs.items() if place not in self._said]
        gone = [self._known[stored] for stored in (*unspoken, *self._absorbed)]
        found.retired += [turn.memory_id for turn in gone if turn.live]
        found.leads = bool(order) and self._leads(*order[0])
        return found

    def _leads(self, place: int | None, stored: int | None) -> bool:
        return place is not None and not (stored is not None and self._known[stored].barred)

    def _pair(
        self, key_of: "attrgetter[Hashable]", given: Sequence[int], known: Sequence[int], *, once: bool = False
    ) -> None:
        """Pairs turns of the same key, the first with the first; with `once` those whose key occurs once in both."""
        pools, wanted = defaultdict[Hashable, deque[int]](deque), defaultdict[Hashable, list[int]](list)
        for stored in self._free(known):
            pools[key_of(self._known[stored])].append(stored)
        for place in given:
            if place not in self._pairs and (key := key_of(self._given[place])):
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

    def _texts_of(self, place: int, stored: int) -> tuple[PreparedTurn, TurnText] | None:
        """Returns a given turn and the text of a stored one; None where they are not one: of two speakers, or ids."""
        prepared, text = self._given[place].prepared, self.texts.get(self._known[stored].memory_id)
        if prepared is None or text is None or prepared.role != text.role or not self._may_be(place, stored):
            return None
        return prepared, text

    def _has_become(self, stored: int, place: int) -> bool:
        """Tells whether a given turn is a stored one with another text."""
        if (both := self._texts_of(place, stored)) is None:
            return False
        given, said, text = self._given[place], _text_of(both[0]), both[1].text
        same_moment = given.is_dated and given.at == self._known[stored].at
        return same_moment or _contains(said, text) or _contains(text, said)

    def _has_taken_in(self, place: int, stored: int) -> bool:
        """Tells whether a given turn, new or of another text than before, has the text of a stored one in its own."""
        if (both := self._texts_of(place, stored)) is None:
            return False
        paired = self._pairs.get(place)
        is_changed = paired is None or self._known[paired].content_hash != self._given[place].content_hash
        return is_changed and _contains(_text_of(both[0]), both[1].text)

    def _places_with_time(self, turns: Sequence[GivenTurn]) -> list[int]:
        return [place for place, turn in enumerate(turns) if turn.is_dated]

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
