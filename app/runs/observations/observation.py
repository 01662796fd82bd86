"""What a finished run leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.runs.run import Run

TITLE_CHARACTERS = 80
FEWEST_FACTS, MOST_FACTS = 3, 5
MOST_SENTENCES = 3
"""Of a narrative."""
MOST_ISSUES, ISSUE_CHARACTERS = 50, 400
"""Together a tenth of what a memory may hold."""
LLM, EXTRACTIVE = "llm", "extractive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished run, as it is compressed."""

    task: str
    output: str
    task_type: str = ""
    queries: tuple[str, ...] = ()
    lines: int | None = None
    bytes: int | None = None
    output_path: str | None = None
    run_id: str | None = None
    final_score: float | None = None
    verdict: str = ""
    issues: tuple[str, ...] = ()
    """The evaluator's, word for word."""
    tags: tuple[str, ...] = ()
    language: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """An outcome in a few words."""

    title: str
    narrative: str
    facts: tuple[str, ...]
    compressor: str
    """LLM, EXTRACTIVE or GIVEN."""
    model: str | None = None
    prompt: str | None = None
    fallback: str = ""
    """Why the language model's answer was not taken, where one was asked."""

    @property
    def body(self) -> str:
        """The text that is stored and found: the narrative above the facts."""
        return "\n".join(part for part in (self.narrative, *(f"- {fact}" for fact in self.facts)) if part)


def as_judged(request: Outcome, run: Run) -> Outcome:
    """The request with the judgement that its run has by now: the run's own score and verdict go before the request's,
    its issues stand beside them.
    """
    return replace(
        request,
        final_score=request.final_score if run.final_score is None else run.final_score,
        verdict=run.verdict or request.verdict,
        issues=tuple(dict.fromkeys((*request.issues, *run.issues))),
    )


def issue_facts(issues: Sequence[str], evaluator: str) -> tuple[str, ...]:
    """The evaluator's issues as facts, each once, marked as its own; of very many the first, and how many more."""
    found = list(dict.fromkeys(shortened(issue, ISSUE_CHARACTERS) for issue in issues if issue.strip()))
    rest = [f"and {len(found) - MOST_ISSUES:,} more"] if len(found) > MOST_ISSUES else []
    return tuple(f"[{evaluator}] {issue}" for issue in (*found[:MOST_ISSUES], *rest))


def is_issue_fact(fact: str, evaluator: str) -> bool:
    """Whether a fact is one of the evaluator's issues."""
    return fact.startswith(f"[{evaluator}] ")


def in_one_line(text: str) -> str:
    """`text` without line breaks and runs of blanks."""
    return " ".join(text.split())


def shortened(text: str, limit: int) -> str:
    """`text` in one line of at most `limit` characters, cut at a word."""
    line = in_one_line(text)
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    at_word = cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut
    return f"{at_word.rstrip(' ,;:.-')}…"
