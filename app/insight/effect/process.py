"""The process that estimates effects: a ledger on standard input, effects on standard output, as MessagePack.

scikit-learn takes 1 s to import and 100 MB, and an estimate holds a core for seconds, which answers to agents need.
"""

import os
import sys

import msgspec

from app.insight.effect.facts import RunsAndSlots
from app.insight.effect.model import estimate_effects
from app.storage.effects.effect import OUTCOMES

NICE = 5
"""Priority of the process: if cores are few, answers to agents come first."""


def main() -> None:
    """Answers one ledger."""
    os.nice(NICE)
    ledger = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=RunsAndSlots)
    found = {outcome: estimate_effects(ledger.runs, ledger.slots, outcome) for outcome in OUTCOMES}
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))


if __name__ == "__main__":
    main()
