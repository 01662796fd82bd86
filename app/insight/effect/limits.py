"""States what the figures of a report do not allow to conclude. Pure."""

from collections.abc import Iterator, Sequence
from statistics import median

from app.foundation.text.words import count_noun
from app.insight.effect.effect import LEAST_RUNS, LEAST_SCORED
from app.insight.effect.facts import RunFacts
from app.insight.effect.report import MEASURES, Contrast, Named

_OBSERVATIONAL = (
    "Runs with history and runs without it were not {all}chosen by chance, so this comparison alone proves no cause:"
    " hard tasks may recall more, and the pipeline itself may have changed meanwhile."
)
_BY_DRAWS = (
    "The comparison by draws is not open to other causes, but it is of all that was found with one memory withheld,"
    " whose slot the next candidate may have got, and not of all history"
)
_SPENT: tuple[tuple[Named, str], ...] = (("cost", "cost"), ("tokens", "number of tokens"), ("duration", "duration"))
_MOSTLY = 0.8
"""Share of a group's runs before the middle of the other group from which they are mostly earlier."""


def limits(facts: Sequence[RunFacts], history: Contrast, drawn: Contrast | None, explore: float) -> tuple[str, ...]:
    """Returns what the figures do not allow to conclude, in sentences."""
    if not facts:
        return ("No finished run is in this period, so there is nothing to compare.",)
    return (
        *_too_few(history),
        *_causes(facts, drawn, explore),
        *_unknown(facts, history),
    )


def limits_of_selection(runs: int, left_out: int, *, is_all: bool, most_estimated: int) -> Iterator[str]:
    """Yields what a report says of other runs than those of its period and task type, or leaves out of them.

    `left_out` earlier runs are not compared, and effects are estimated from the latest `most_estimated` runs.
    """
    if left_out:
        yield (
            f"There are {runs + left_out:,} finished runs; the latest {runs:,} are compared, and"
            f" {count_noun(left_out, 'earlier run')} {'is' if left_out == 1 else 'are'} left out."
        )
    if is_all and runs + left_out > most_estimated:
        yield f"The effects of memories are estimated from the latest {most_estimated:,} runs alone."
    if not is_all:
        yield (
            f"The effects of memories are estimated over the workspace's latest {most_estimated:,} runs at most, of all"
            " periods and task types; those of memories that these runs recalled are shown. An"
            " alert is about an issue that was named of these runs; its versions are those of all runs."
        )


def _too_few(history: Contrast) -> list[str]:
    score = history.measure("score")
    counts = [0 if side is None else side.runs for side in (score.given, score.without)]
    if not any(counts):
        return ["No run has a final score, so nothing can be said about the quality of the outputs."]
    found = []
    if min(counts) < LEAST_SCORED:
        found.append(
            f"{count_noun(counts[0], 'scored run')} with history and {counts[1]:,} without are too little data for a"
            f" conclusion: each group should have {LEAST_SCORED} at least. A difference may be chance."
        )
    if score.difference is None:
        return found
    if score.difference.low is None or score.difference.high is None:
        cause = (
            f"A group has fewer than {LEAST_RUNS} scored runs, which are too little data"
            if min(counts) < LEAST_RUNS
            else "All scores of a group are the same, which is not enough"
        )
        found.append(f"{cause} to tell how much chance does, so the difference in score has no interval.")
    elif min(counts) >= LEAST_SCORED and score.difference.low <= 0 <= score.difference.high:
        found.append(
            "The interval of the difference in score includes 0: these runs do not show that history helps,"
            " nor that it harms."
        )
    return found


def _causes(facts: Sequence[RunFacts], drawn: Contrast | None, explore: float) -> list[str]:
    chosen = sum(item.exposure.some is not None for item in facts)
    found = [_OBSERVATIONAL.format(all="all " if chosen else "")] if chosen < len(facts) else []
    if earlier := _earlier(facts):
        found.append(f"The runs {earlier} history are mostly the earlier ones, so what changed over time counts too.")
    if drawn is None:
        how = f"is {explore:g}, but no run of this period has a draw yet" if explore else "is 0"
        found.append(
            f"No memory was withheld by chance (PRIORS_EXPLORE {how}). With a share such as 0.1, the effect of a"
            " memory can be told from other causes."
        )
    else:
        few = drawn.measure("score").without
        known = 0 if few is None else few.runs
        support = (
            ""
            if known >= LEAST_SCORED
            else f"; it rests on {count_noun(known, 'scored run')} with a withheld memory: too little data"
        )
        found.append(f"{_BY_DRAWS}{support}.")
    return found


def _unknown(facts: Sequence[RunFacts], history: Contrast) -> list[str]:
    found = []
    for name, word in _SPENT:
        known = sum(MEASURES[name](item) is not None for item in facts)
        if not known:
            found.append(f"No run names its {word}.")
        elif known < len(facts):
            found.append(f"The {word} is known of {known:,} of {count_noun(len(facts), 'run')}.")
    if history.repeat_rate is None and history.repeat_rate_without is None:
        found.append(
            "No run has a judgement that lists issues and follows one of an earlier version of its case, so nothing can"
            " be said about repeated mistakes."
        )
    return found


def _earlier(facts: Sequence[RunFacts]) -> str:
    """Returns the group whose runs are mostly earlier than those of the other; empty if neither's are."""
    given, without = ([item.run.at for item in facts if (item.exposure.shown > 0) is side] for side in (True, False))
    if not given or not without:
        return ""
    for name, early, late in (("without", without, given), ("with", given, without)):
        middle = median(moment.timestamp() for moment in late)
        if sum(moment.timestamp() < middle for moment in early) >= _MOSTLY * len(early):
            return name
    return ""
