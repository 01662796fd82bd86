"""Blocks: the best passages of hits, one block for each source, within a budget."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.foundation.models.protocols import TokenCounter
from app.foundation.text.passages import passages_of
from app.recall.context.blocks import gather_blocks, least_budget, section_of
from app.recall.retrieval.rank.passages import PassageScore
from app.recall.retrieval.recall import Hit, HitPassage, IssueState
from app.storage.memories.memory import Memory

ONE, OTHER = uuid4(), uuid4()


def hit(body: str, *scores: float, source: UUID | None = None, ordinal: int = 0, **given: Any) -> Hit:
    """Returns a hit whose passages have these scores."""
    empty: dict[str, Any] = dict.fromkeys(Memory.__slots__)
    fixed = {"memory_id": uuid4(), "kind": "chunk", "title": "File › Part", "tags": (), "metadata": {}, "quality": 0}
    memory = Memory(**{**empty, **fixed, "body": body, "source_id": source, "ordinal": ordinal, **given})
    passages = [
        HitPassage(PassageScore(passage, score, 0.5, 0.5), score)
        for passage, score in zip(passages_of(body), scores, strict=True)
    ]
    return Hit(memory=memory, score=max(scores), explain={}, passages=tuple(passages))


def answer(hits: list[Hit], counter: TokenCounter, *, k: int = 3, budget: int = 500) -> str:
    return section_of(gather_blocks(hits, k=k, budget=budget, counter=counter))


def test_a_block_gathers_the_passages_of_a_source_in_their_order(counter: TokenCounter) -> None:
    first = hit("First says one thing.", 0.5, source=ONE, ordinal=1, source_title="r.md")
    later = hit("Later says another thing.", 0.9, source=ONE, ordinal=4, source_title="r.md")
    markdown = answer([later, first], counter)
    assert markdown.count("```") == 2
    assert markdown.index("First says") < markdown.index("…") < markdown.index("Later says")
    assert markdown.count("› Part") == 1


def test_k_counts_blocks_and_a_weak_passage_is_left_out(counter: TokenCounter) -> None:
    hits = [hit(f"Statement {name} of its own.", 0.9, source=uuid4()) for name in ("alpha", "beta", "gamma")]
    assert answer(hits, counter, k=2).count("```") == 4
    weak = hit("Strong statement here.\n\nWeak words there.", 0.9, 0.2, source=ONE)
    assert "Weak" not in answer([weak], counter)


def test_another_source_needs_half_of_the_best_evidence_for_a_block(counter: TokenCounter) -> None:
    hits = [hit("Alpha says one thing.", 0.9, source=ONE), hit("Beta says another thing.", 0.8, source=OTHER)]
    for own, shown in ((0.5, True), (0.1, False)):
        found = [
            replace(
                item, passages=tuple(part._replace(passage=part.passage._replace(own=own_of)) for part in item.passages)
            )
            for item, own_of in zip(hits, (0.6, own), strict=True)
        ]
        assert ("Beta" in answer(found, counter)) is shown


def test_the_same_statement_stands_once(counter: TokenCounter) -> None:
    hits = [
        hit("The prices of 2019 are too old.", 0.9, source=ONE),
        hit("Prices of 2019 are too old.", 0.8, source=OTHER),
    ]
    assert answer(hits, counter).count("2019") == 1


def test_an_introduction_is_shown_once_and_rows_come_with_their_header(counter: TokenCounter) -> None:
    rows = "\n".join(f"| v{number} | {'remark ' * 16}|" for number in range(6))
    body = f"| version | remark |\n|---|---|\n{rows}"
    markdown = answer([hit(body, 0.5, 0.4, 0.9, 0.4, 0.4, 0.8, source=ONE)], counter)
    assert markdown.count("| version | remark |") == 1


@pytest.mark.parametrize("budget", [1, 40, 60, 90, 150, 500])
def test_a_section_fits_its_budget(counter: TokenCounter, budget: int) -> None:
    long = " ".join(f"Sentence number {number} says what it says." for number in range(9))
    hits = [hit(long, 0.9, source=uuid4(), source_title="a/long/path_of_a_report.md") for _ in range(5)]
    assert counter.count(answer(hits, counter, budget=budget)) <= budget


def test_the_least_budget_shows_the_best_passage(counter: TokenCounter) -> None:
    hits = [hit(" ".join(f"Sentence number {number} says what it says." for number in range(9)), 0.9, source=ONE)]
    least = least_budget(hits, counter)
    assert answer(hits, counter, budget=least)
    assert not answer(hits, counter, budget=least - 20)


def test_the_source_line_has_path_version_score_and_state(counter: TokenCounter) -> None:
    found = hit("Said.", 0.9, source=ONE, source_title="case/v3.md", title="Erratum: the count", final_score=6.9)
    assert "\n# case/v3.md · 6.9/10\n\n" in answer([found], counter)
    same = hit(
        "Said.",
        0.9,
        source=ONE,
        source_title="case/v3.md",
        title="case v3 › 4. Judge › Issues",
        metadata={"version": "v3"},
    )
    assert "\n# case/v3.md\n\n› 4. Judge › Issues\nSaid." in answer([same], counter)
    judged = hit(
        "There are no\nactors.",
        0.9,
        source=ONE,
        source_title="r5.json",
        metadata={"version": "v5", "verdict": "deliver"},
    )
    assert " · v5 · deliver\n" in answer([judged], counter)
    resolved = IssueState(title="No actors", status="resolved", state="resolved in v6", words=("no actors",))
    assert " · v5 · resolved in v6\n" in answer([replace(judged, issues=(resolved,), stated_issues=1)], counter)
    silent = hit("Something else.", 0.9, source=ONE, source_title="r5.json", metadata={"version": "v5"})
    assert "\n# r5.json · v5\n" in answer([replace(silent, issues=(resolved,), stated_issues=1)], counter)


def test_a_heading_that_is_left_out_states_its_issue_all_the_same(counter: TokenCounter) -> None:
    resolved = IssueState(
        title="Table lacks citation", status="resolved", state="resolved in v6", words=("table lacks citation",)
    )
    below = hit("The table lacks a citation.", 0.9, source=ONE, source_title="r.md", title="r › Table lacks citation")
    alone = hit("No source is named.", 0.9, title="Table lacks citation")
    for found in (below, alone):
        markdown = answer([replace(found, issues=(resolved,), stated_issues=1)], counter)
        assert (" · resolved in v6\n" in markdown, "›" in markdown) == (True, False)


def test_a_long_heading_path_is_shortened_in_its_middle_and_a_repeated_one_is_not_shown_twice(
    counter: TokenCounter,
) -> None:
    path = [
        "Findings of the second audit of the vault",
        "All that we found there, in the order of severity",
        "High",
        "[H-1] Anyone can drain it",
    ]
    title = " › ".join(["Audit of the vault and of all its adapters, as of the second of March", *path])
    first = hit("Said here.", 0.9, source=ONE, source_title="a.md", title=f"{title} › Description")
    second = hit("Done there.", 0.8, source=ONE, source_title="a.md", title=f"{title} › Impact")
    text = answer([first, second], counter)
    assert f"\n› {path[0]} › … › High › {path[-1]} › Description\nSaid here.\n› Impact\nDone there." in text


def test_the_source_line_has_what_the_file_says_of_itself(counter: TokenCounter) -> None:
    found = hit("Said.", 0.9, source=ONE, source_title="a.md", metadata={"state": "superseded by b.md"})
    assert "\n# a.md · superseded by b.md\n\n› Part\nSaid." in answer([found], counter)


def test_the_source_line_has_what_the_file_concludes_unless_the_block_says_it(counter: TokenCounter) -> None:
    concluded = {"conclusion": "Verdict: FAIL, too few trades"}
    other = hit("The signal is rare.", 0.9, source=ONE, source_title="a.md", metadata=concluded)
    assert "\n# a.md · Verdict: FAIL, too few trades\n\n" in answer([other], counter)
    same = hit("**Verdict:** FAIL, *too few* trades\nOf May.", 0.9, source=ONE, source_title="a.md", metadata=concluded)
    assert "\n# a.md\n\n" in answer([same], counter)
    outdated = hit("Said.", 0.9, source=ONE, source_title="a.md", metadata={**concluded, "state": "withdrawn in May"})
    assert "\n# a.md · withdrawn in May\n\n" in answer([outdated], counter)
