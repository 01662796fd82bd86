"""Splits a plan into its steps. Pure."""

from app.foundation.text.markdown import ITEM

MOST_STEPS = 30
"""Steps that are looked at one by one; the last one has the rest of a longer plan."""
FEWEST_ITEMS = 2
"""List items that make a plan a list."""


def steps_of(plan: str) -> tuple[str, ...]:
    """Returns the steps of a plan: the items of its list, or its paragraphs where it has none.

    A paragraph is not split: the thresholds of activations were fitted to plans of one to three sentences.
    """
    lines = plan.strip().splitlines()
    if sum(bool(ITEM.match(line)) for line in lines) >= FEWEST_ITEMS:
        parts = _items(lines)
    else:
        parts = [" ".join(part.split()) for part in "\n".join(line.rstrip() for line in lines).split("\n\n")]
    steps = [part for part in parts if part] or [plan.strip()]
    last = " ".join(steps[MOST_STEPS - 1 :])
    return (*steps[: MOST_STEPS - 1], *([last] if last else []))


def _items(lines: list[str]) -> list[str]:
    """Returns the items of a list. A line below an item belongs to it; lines before the first one are no step."""
    found: list[str] = []
    for line in lines:
        if ITEM.match(line):
            found.append(ITEM.sub("", line).strip())
        elif found:
            found[-1] = f"{found[-1]} {line.strip()}".strip()
    return found
