"""Chunks of real documents and of hostile ones."""

import json
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.errors import InvalidInput
from app.foundation.models.protocols import TokenCounter
from app.foundation.text.document import read_document
from app.foundation.text.scores import found_date, found_score, written_date
from app.intake.reports.chunk import MAX_TOKENS, MOST_FIELDS, Chunk, has_content, is_scalar, metadata_of_scalars
from app.intake.reports.markdown import chunk_markdown
from app.intake.reports.prepare import chunk_document, path_tags, read_report
from tests.growth import assert_linear

SECTION = "The judge asked for sources in each of the versions, and none of them had any that could be opened."


def chunks_of(name: str, content: str | bytes, counter: TokenCounter) -> list[Chunk]:
    raw = content if isinstance(content, bytes) else content.encode()
    path = PurePosixPath(name)
    found = chunk_document(path, read_report(path, raw, mask=False), counter)
    for chunk in found:
        assert counter.count(f"{chunk.title}\n{chunk.text}") <= MAX_TOKENS
        assert any(letter.isalnum() for letter in chunk.text)
        assert chunk.heading_path
    return found


def test_markdown_follows_its_headings(counter: TokenCounter) -> None:
    long = "The scout found nothing that could be verified in any of the registers that it was asked to look into. " * 2
    text = f"# Report\n\n{long}\n\n## Actors\n\n{long}\n\n### Import\n\n{long}\n\n## Sizing\n\n{long}\n"
    titles = [chunk.title for chunk in chunks_of("v6/report.md", text, counter)]
    assert titles == ["Report", "Report › Actors", "Report › Actors › Import", "Report › Sizing"]


def test_front_matter_gives_title_date_and_score(counter: TokenCounter) -> None:
    text = "---\ntitle: Verdict\ndate: 2026-03-01\nscore: 7.5/10\n---\n\nThe report passes.\n"
    (chunk,) = chunks_of("x.md", text, counter)
    assert (chunk.title, chunk.final_score) == ("Verdict", 7.5)
    assert chunk.occurred_at is not None
    assert chunk.occurred_at.date().isoformat() == "2026-03-01"


def test_broken_front_matter_is_text(counter: TokenCounter) -> None:
    (chunk,) = chunks_of("x.md", "---\ntitle: [\n---\n\nThe report passes.\n", counter)
    assert "The report passes." in chunk.text


def test_front_matter_that_is_nested_too_deep_is_read_line_by_line(counter: TokenCounter) -> None:
    text = f"---\ntitle: Glaze\nrows: {'[' * 5_000}\n---\n\nThe report passes.\n"
    assert {chunk.title for chunk in chunks_of("x.md", text, counter)} == {"Glaze"}


def test_a_long_table_repeats_its_header(counter: TokenCounter) -> None:
    rows = "\n".join(f"| Brand {number} | {number * 7} million rubles | pharmacies |" for number in range(60))
    text = f"# Market\n\n| Brand | Revenue | Channel |\n| --- | --- | --- |\n{rows}\n"
    chunks = chunks_of("x.md", text, counter)
    assert len(chunks) > 2
    assert all(chunk.text.startswith("| Brand | Revenue | Channel |\n| --- |") for chunk in chunks)
    assert sum(chunk.text.count("million") for chunk in chunks) == 60


def test_a_long_fence_stays_a_fence(counter: TokenCounter) -> None:
    body = "\n".join(f"step_{number} = run({number})" for number in range(200))
    chunks = chunks_of("x.md", f"# Log\n\n```python\n{body}\n```\n", counter)
    assert len(chunks) > 2
    assert all(chunk.text.startswith("```python\n") and chunk.text.endswith("```") for chunk in chunks)


def test_a_long_list_is_cut_between_items(counter: TokenCounter) -> None:
    items = "\n".join(f"- Item {number} is about the sources\n  - and has a nested remark" for number in range(40))
    chunks = chunks_of("x.md", f"# List\n\n{items}\n", counter)
    assert len(chunks) > 1
    assert all(chunk.text.startswith("- Item") for chunk in chunks)


def test_each_issue_is_a_chunk_with_its_pointer(counter: TokenCounter) -> None:
    issues = [
        {"severity": "P1", "title": "TAM without method", "detail": "Neither top-down nor bottom-up is shown here."},
        {"severity": "P0", "title": "No actors", "detail": "The scout returned an empty list and nobody escalated it."},
    ]
    document = {"title": "Judgement of v6", "score": 3.2, "date": "2026-03-01T10:00:00Z", "issues": issues}
    chunks = chunks_of("v6/judgement.json", json.dumps(document), counter)
    found = {chunk.pointer: chunk for chunk in chunks}
    assert {"/issues/0", "/issues/1"} <= set(found)
    assert found["/issues/1"].title == "Judgement of v6 › issues"
    assert "severity: P0" in found["/issues/1"].text
    assert [chunk.final_score for chunk in chunks] == [3.2] * len(chunks)
    assert all(chunk.occurred_at is not None for chunk in chunks)


@pytest.mark.parametrize(
    "text",
    [
        "date: 2026-03-09", "2026-03-09", "**Generated**: 2026-01-20T06:16:22+00:00", "| Date | 9 March 2026 |",
        "Monday, March 9th, 2026", "## Task given to the agent", "## 2. Sources", "Sources:",
        "links.seen:\ndate: 2026-03-09", "criteria_scores: {}", "notes: null\nowner: TBD",
    ],
)  # fmt: skip
def test_dates_bare_headings_and_empty_values_are_no_content(text: str) -> None:
    assert not has_content(text)


@pytest.mark.parametrize(
    "text",
    [
        "Deadline: 2026-05-01", "Fourth run in March 2026", "## Never retry an empty scout before widening its query",
        "## P0: no actors", "## TAM without methodology", "Open issues: none", "score: 4.1", "12",
        "date: 2026-03-09\nverdict: fail", "2024 was better than 2025",
    ],
)  # fmt: skip
def test_what_states_something_is_content(text: str) -> None:
    assert has_content(text)


def test_a_heading_that_is_a_long_number_is_read_in_linear_time() -> None:
    assert_linear(lambda digits: has_content(f"# {digits}x"), "1", characters=3)
    assert_linear(lambda digits: has_content(f"# {digits}x"), "1", characters=20_000)


def test_a_chunk_without_content_is_left_out(counter: TokenCounter) -> None:
    links = {"title": "List of links", "date": "2026-03-09", "links": [{"id": "s01", "note": "Census table 7."}]}
    (chunk,) = chunks_of("v7/links.json", json.dumps(links), counter)
    assert "Census" in chunk.text
    stated = "---\ntitle: Report\ndate: 2026-01-12\nscore: 4.1\n---\n\n# Report\n\n"
    report = f"{stated}## Task given to the agent\n\n## Sizing\n\n{SECTION}\n\n## 2. Sources\n"
    (chunk,) = chunks_of("v1/report.md", report, counter)
    assert (chunk.title, chunk.text, chunk.final_score) == ("Report › Sizing", SECTION, 4.1)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("# Judgement\n\n**Date:** 2026-03-23\n", "2026-03-23"),
        ("- Judged on: 23 March 2026", "2026-03-23"),
        ("| Date | March 23, 2026 |", "2026-03-23"),
        ("Дата: 2026-03-23", "2026-03-23"),
        ("Date: yesterday", None),
        ("Date: to be agreed in May 2026", None),
        ("Deadline: 2026-03-23", None),
        (f"{'Much is said first. ' * 200}\nDate: 2026-03-23", None),
    ],
)
def test_a_line_states_the_date_of_its_text(text: str, date: str | None) -> None:
    found = written_date(text)
    assert (found and found.date().isoformat()) == date


@pytest.mark.parametrize(
    ("title", "day"),
    [
        ("# Meeting 2026-03-04", 4),
        ("# 2026-03-04 review", 4),
        ("\n# Minutes (2026-03-04)\n\nOn 2026-01-01 we began.", 4),
        ("# Outlook until 2026-03-04", None),
        ("# 2026-03-04 to 2026-03-09", None),
        ("# Why 2026-03-04 failed", None),
        ("# Ticket AB-2026-03-04", None),
        ("# Meeting 2026-13-44", None),
        ("## Meeting 2026-03-04", None),
        ("# Meeting 2026-03-04\n\nDate: 2026-03-05", 5),
    ],
)
def test_the_date_of_a_title_is_the_documents_if_it_states_no_other(title: str, day: int | None) -> None:
    found = written_date(title)
    assert (found and found.date()) == (day and datetime(2026, 3, day, tzinfo=UTC).date())


def test_a_plot_is_one_chunk_of_what_it_shows(counter: TokenCounter) -> None:
    rows = [{"tier": f"T{number}", "cost": number} for number in range(500)]
    plot = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": "Cost by tier",
        "datasets": {"data": rows},
        "mark": "bar",
        "encoding": {"x": {"field": "tier", "title": "Tier"}, "y": {"field": "cost", "title": "Cost in dollars"}},
    }
    (chunk,) = chunks_of("fig.vl.json", json.dumps(plot), counter)
    assert "Cost by tier" in chunk.title + chunk.text
    assert "Cost in dollars" in chunk.text


def test_machine_noise_does_not_flood(counter: TokenCounter) -> None:
    dump = {"runs": [{"id": f"{number:032x}", "t": number / 7, "ok": True} for number in range(5000)]}
    assert 1 <= len(chunks_of("state.json", json.dumps(dump), counter)) <= 12
    (numbers,) = chunks_of("n.json", json.dumps({"samples": list(range(10_000))}), counter)
    assert "10000 numbers from 0 to 9999" in numbers.text


def test_a_document_of_nothing_but_numbers_is_summarised(counter: TokenCounter) -> None:
    (numbers,) = chunks_of("n.json", json.dumps(list(range(100_000))), counter)
    assert numbers.text == "100000 numbers from 0 to 99999, mean 49999.5"
    (rows,) = chunks_of("rows.json", json.dumps([list(range(100)), list(range(200))]), counter)
    assert rows.text == "100 numbers from 0 to 99, mean 49.5\n200 numbers from 0 to 199, mean 99.5"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("x.json", b'{"a": 1,}', "line 1"),
        ("x.json", b"[" * 100_000, "deep"),
        ("x.json", b"", "empty"),
        ("x.md", b" \n\t", "empty"),
        ("x.md", b"a\x00b", "NUL"),
        ("x.md", "Größe".encode("latin-1"), "byte 2"),
        ("x.json", b"{}", "empty"),
        ("x.md", b"# One\n\n## Two\n", "empty"),
        ("links.json", b'{"title": "List of links", "date": "2026-03-09"}', "empty"),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(name: str, content: bytes, reason: str, counter: TokenCounter) -> None:
    with pytest.raises(InvalidInput, match=reason):
        chunks_of(name, content, counter)


HASHES = ["#" * depth for depth in range(1, 7)]
HOSTILE = {
    "one-word.md": "x" * 10_000,
    "long-heading.md": f"# {'word ' * 500}\n\ntext\n",
    "deep-headings.md": "".join(f"{'#' * (number % 6 + 1)} Heading number {number}\n" for number in range(200))
    + "\ntext",
    "huge-row.md": "| a | b |\n| - | - |\n| " + "word " * 2000 + " | x |\n",
    "open-fence.md": "```\n" + "line\n" * 3000,
    "punctuation.md": "# A\n\n---\n\n***\n\ntext",
    "bom.md": "\ufeff# Title\n\ntext",
    "surrogate.json": '{"a": "half \\ud800 and nul \\u0000 here"}',
    "long-string.json": json.dumps({"report": "A sentence about the market. " * 500}),
    "long-key.json": json.dumps({"k" * 3000: {"inner": "a value of some words that speak"}}),
    "big-number.json": '{"n": ' + "9" * 5000 + "}",
    "not-a-number.json": '{"n": NaN, "m": -Infinity, "text": "but some words are here too"}',
    "nested.json": "[" * 40 + '"deep words"' + "]" * 40,
    "list.json": json.dumps([f"A finding of the judge with the number {number}" for number in range(50)]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_give_chunks_that_fit(name: str, counter: TokenCounter) -> None:
    found = chunks_of(name, HOSTILE[name], counter)
    assert found
    for chunk in found:
        assert "\0" not in chunk.text
        assert chunk.text.encode()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet="#-*|`> \n\tabc1.é", max_size=400))
def test_any_markdown_keeps_its_words(text: str, counter: TokenCounter) -> None:
    document = read_document(text, ".md")
    found = chunk_markdown(document.facts, document.body, "x", counter)
    said = " ".join(f"{chunk.title} {chunk.text}" for chunk in found)
    for word in text.replace("|", " ").replace("`", " ").split():
        if word.isalnum() and found:
            assert word in said


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=60)),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=12), inner, max_size=5)),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON_VALUES)
@example(value="_")
@example(value={"_": "__"})
def test_any_json_is_chunked_or_refused(value: object, counter: TokenCounter) -> None:
    content = json.dumps(value)
    try:
        first = chunks_of("x.json", content, counter)
    except InvalidInput:
        return
    assert chunks_of("x.json", content, counter) == first


@pytest.mark.parametrize(
    ("facts", "score"),
    [
        ({"score": 0.96}, 9.6), ({"score": 7}, 7.0), ({"score": 85}, 8.5), ({"score": "7.5/10"}, 7.5),
        ({"score": "75%"}, 7.5), ({"score": True}, None), ({"score": "A"}, None), ({"final_score": 3, "score": 9}, 3.0),
        ({"score": -1}, None), ({"score": 1000}, None), ({"score": 10**400}, None),
        ({"final_score": 1.0}, 1.0), ({"final_score": 0.5}, 0.5), ({"final_score": 85, "score": 7}, 7.0),
        ({"score": 0.9, "max_score": 10}, 0.9), ({"score": 3, "max": 5}, 6.0), ({"score": 0.5, "max": 0.9}, 5.0),
    ],
)  # fmt: skip
def test_scores_are_put_on_the_scale_of_ten(facts: dict[str, object], score: float | None) -> None:
    found = found_score(facts)
    assert found == (None if score is None else pytest.approx(score))


@pytest.mark.parametrize(
    ("facts", "moment"),
    [
        ({"date": "2026-03-01"}, "2026-03-01T00:00:00+00:00"),
        ({"timestamp": "2026-03-01T10:00:00+02:00"}, "2026-03-01T08:00:00+00:00"),
        ({"created_at": 1_772_359_200}, "2026-03-01T10:00:00+00:00"),
        ({"created_at": 1_772_359_200_000}, "2026-03-01T10:00:00+00:00"),
        ({"date": "soon"}, None),
        ({"date": 12}, None),
    ],
)
def test_dates_are_found(facts: dict[str, object], moment: str | None) -> None:
    found = found_date(facts)
    assert (None if found is None else found.isoformat()) == moment


def test_tags_are_the_folders() -> None:
    assert path_tags(PurePosixPath("BADs-Russia/v6/judgement.json")) == ("bads-russia", "v6")
    assert path_tags(PurePosixPath("report.md")) == ()


def test_real_reports_give_sound_chunks(shared_data: Path, counter: TokenCounter) -> None:
    folder = shared_data / "reports-scylla"
    found = []
    for file in sorted(folder.rglob("*")):
        if file.suffix in {".md", ".json"}:
            found += chunks_of(file.relative_to(folder).as_posix(), file.read_bytes(), counter)
    assert 400 < len(found) < 2000
    reasons = [chunk for chunk in found if "unnecessary README file when the task only required hello.py" in chunk.text]
    assert reasons
    tables = [chunk for chunk in found if "| Model | Tier | Subtests |" in chunk.text]
    assert tables


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", '{"score": 1' + "0" * 400 + "}"),
        ("x.json", '{"v": [1' + "0" * 400 + ", 2]}"),
        ("x.json", '{"v": [' + ", ".join(["1" + "0" * 299] * 40) + "]}"),
        ("x.md", "---\nscore: 1" + "0" * 400 + "\n---\n\nThe report passes.\n"),
    ],
)
def test_a_number_beyond_every_float_stops_nothing(name: str, content: str, counter: TokenCounter) -> None:
    assert all(chunk.final_score is None for chunk in chunks_of(name, content, counter))


LOG = "\n".join(
    f"2026-05-04T10:{minute:02}:{second:02}Z INFO stage scout took {minute * second} ms for request {minute}f{second}"
    for minute in range(60)
    for second in range(60)
)


@pytest.mark.parametrize(("name", "top"), [("pipeline.log", ""), ("report.md", "# Run 9\n\nThe run's log:\n\n```\n")])
def test_repeated_log_lines_count_once(name: str, top: str, counter: TokenCounter) -> None:
    error = "2026-05-04T11:00:00Z ERROR the registry of Cyprus refused the key\n  File scout.py, line 7, in fetch"
    document = read_report(PurePosixPath(name), f"{top}{LOG}\n{error}\n".encode(), mask=True)
    assert document.notes == ("3,598 repeated log lines counted once",)
    text = "\n".join(chunk.text for chunk in chunk_document(PurePosixPath(name), document, counter))
    assert "T10:00:00Z INFO stage scout took 0 ms" in text
    assert "… 3,598 more like it, then:\n2026-05-04T10:59:59Z" in text
    assert error in text


def test_every_line_of_a_log_is_a_programs(counter: TokenCounter) -> None:
    lines = [f"(Reading database ... {share}%" for share in range(0, 101, 5)]
    text = "\n".join([*lines, "Unpacking libssh2 over ...", "dpkg: error: the disk is full"])
    (chunk,) = chunks_of("term.log", text, counter)
    assert chunk.text.split("\n") == [lines[0], "… 19 more like it, then:", lines[-1], *text.split("\n")[-2:]]
    (chunk,) = chunks_of("term.txt", text, counter)
    assert all(line in chunk.text for line in lines)


def test_a_diary_keeps_every_line(counter: TokenCounter) -> None:
    towns = [
        "Oslo",
        "Rome",
        "Bonn",
        "Lima",
        "Bern",
        "Kyiv",
        "Riga",
        "Baku",
        "Doha",
        "Male",
        "Lome",
        "Suva",
        "Apia",
        "Cork",
        "Graz",
        "Linz",
        "Brno",
        "Pisa",
        "Bari",
        "Metz",
        "Caen",
    ]
    lines = [f"2026-05-{day:02} we walked to {town}" for day, town in enumerate(towns[:21], start=1)]
    text = "\n".join(chunk.text for chunk in chunks_of("diary.txt", "\n".join(lines), counter))
    assert all(line in text for line in lines)


def test_aliases_of_front_matter_are_not_expanded(counter: TokenCounter) -> None:
    levels = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12))
    text = f"---\na0: &a0 [x, y]\n{levels}title: *a11\n---\n\nThe report passes.\n"
    chunks = chunks_of("v1/report.md", text, counter)
    # Front matter whose aliases stand for too much is read line by line.
    assert {chunk.title for chunk in chunks} == {"*a11"}
    assert sum(len(chunk.text) for chunk in chunks) < len(text)


def test_front_matter_describes_its_file(counter: TokenCounter) -> None:
    text = "---\ntitle: Verdict\nround: 3\nverdict: FAIL\nstages: [scout, judge]\n---\n\nScore 3.1 · 88 min\n"
    (chunk,) = chunks_of("x.md", text, counter)
    assert chunk.text == "stages: scout, judge\n\nScore 3.1 · 88 min"
    fields = {"round": "3", "verdict": "FAIL"}
    assert metadata_of_scalars(chunk.fields) == {"version": "v3", "verdict": "FAIL", "fields": fields}


def test_prose_of_front_matter_stays_text(counter: TokenCounter) -> None:
    text = f"---\nversion: v2\nsummary: {SECTION}\n---\n\nThe report rests on guesses.\n"
    (chunk,) = chunks_of("x.md", text, counter)
    assert chunk.text == f"summary: {SECTION}\n\nThe report rests on guesses."
    assert metadata_of_scalars(chunk.fields) == {"version": "v2", "fields": {"version": "v2"}}


def test_long_front_matter_stays_text(counter: TokenCounter) -> None:
    facts = {**{f"metric {number}": number for number in range(MOST_FIELDS)}, "version": "v2"}
    text = "\n".join(f"{key}: {value}" for key, value in facts.items())
    (chunk,) = chunks_of("x.md", f"---\n{text}\n---\n\nThe report rests on guesses.\n", counter)
    assert chunk.text == text.removesuffix("\nversion: v2") + "\n\nThe report rests on guesses."
    listed = ", ".join(f"source {number}" for number in range(40))
    (chunk,) = chunks_of("x.md", f"---\nsources: [{listed}]\n---\n\nThe report rests on guesses.\n", counter)
    assert chunk.text.startswith(f"sources: {listed}\n")


def test_front_matter_without_a_text_below_it_is_a_chunk(counter: TokenCounter) -> None:
    (chunk,) = chunks_of("x.md", "---\nclient: Acme\nverdict: FAIL\n---\n\n# Report\n", counter)
    assert (chunk.title, chunk.text) == ("Report", "client: Acme\nverdict: FAIL")


ROUND = {"client": "Acme", "version": "v5", "date": "2026-03-01", "score": 8.1, "verdict": "deliver", "minutes": 58}
ISSUE = {"severity": "P1", "text": "The scout returned an empty list and nobody escalated it."}


def test_what_a_file_says_of_itself_is_no_chunk(counter: TokenCounter) -> None:
    chunks = chunks_of("x.json", json.dumps({**ROUND, "summary": SECTION, "next": "Ask.", "issues": [ISSUE]}), counter)
    assert [chunk.text for chunk in chunks] == [
        f"summary: {SECTION}\nnext: Ask.\n\nminutes: 58",
        "\n".join(f"{key}: {value}" for key, value in ISSUE.items()),
    ]
    for chunk in chunks:
        assert chunk.final_score == 8.1
        assert chunk.occurred_at is not None
        found = metadata_of_scalars(chunk.fields)
        assert (found["case"], found["version"], found["verdict"]) == ("Acme", "v5", "deliver")
        assert found["fields"] == {key: str(value) for key, value in ROUND.items()}


def test_scalars_beside_issues_alone_stay_fields(counter: TokenCounter) -> None:
    document = {**ROUND, "scores": {"evidence": 6, "actions": 4}, "issues": [ISSUE, {"issue": "No actors"}]}
    chunks = chunks_of("x.json", json.dumps(document), counter)
    assert [chunk.pointer for chunk in chunks] == ["/issues/0", "/issues/1"]
    fields = metadata_of_scalars(chunks[0].fields)["fields"]
    assert (fields["minutes"], fields["scores.evidence"], fields["scores.actions"]) == ("58", "6", "4")


def test_scalars_of_a_nested_object_are_a_passage_of_the_text(counter: TokenCounter) -> None:
    document = {"run": "acme/v3", "judged_on": "2026-01-29", "overall": 6.0, "scores": {"evidence": 6}, "why": SECTION}
    (chunk,) = chunks_of("x.json", json.dumps(document), counter)
    assert chunk.text == f"why: {SECTION}\n\nscores:\nevidence: 6"
    assert (chunk.final_score, metadata_of_scalars(chunk.fields)["version"]) == (6.0, "v3")
    assert chunk.occurred_at is not None


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (ROUND, "\n".join(f"{key}: {value}" for key, value in ROUND.items())),
        ({"stage": "scout", "timing": {"seconds": 3}}, "stage: scout\ntiming:\nseconds: 3"),
        ({"verdict": "FAIL", "notes": "TBD"}, "verdict: FAIL\nnotes: TBD"),
    ],
)
def test_a_file_of_scalars_alone_is_one_chunk(document: dict[str, object], text: str, counter: TokenCounter) -> None:
    assert [chunk.text for chunk in chunks_of("result.json", json.dumps(document), counter)] == [text]


def test_more_scalars_than_describe_a_file_are_data(counter: TokenCounter) -> None:
    data = {f"metric {number}": number for number in range(MOST_FIELDS)}
    chunks = chunks_of("x.json", json.dumps({**ROUND, **data, "issues": [ISSUE]}), counter)
    assert all(f"metric {number}: {number}" in chunks[0].text for number in range(MOST_FIELDS))
    assert "verdict" not in chunks[0].text
    assert metadata_of_scalars(chunks[0].fields)["fields"].keys() == ROUND.keys() - {"minutes"}


def test_rows_of_a_score_history_stay(counter: TokenCounter) -> None:
    rows = [{"round": f"v{number}", "score": 4.6, "why": "no proofs"} for number in (1, 2)]
    (chunk,) = chunks_of("x.json", json.dumps({"client": "Acme", "bar": 7, "rounds": rows}), counter)
    listed = "\n".join(f"round: v{number}, score: 4.6, why: no proofs" for number in (1, 2))
    assert chunk.text == f"bar: 7\n\nrounds:\n{listed}"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"test_case": "Tea", "client": "Acme", "version": 3}, {"case": "Tea", "version": "v3"}),
        ({"experiment": "noshow-v2"}, {"case": "noshow-v2", "version": "v2"}),
        ({"meta.version": "v4", "passed": False}, {"version": "v4", "verdict": "not passed"}),
        ({"status": "done", "version": "final"}, {}),
        ({"status": "passed", "run": "8f14e45f"}, {"verdict": "passed"}),
    ],
)
def test_fields_name_case_version_and_verdict(fields: dict[str, object], named: dict[str, str]) -> None:
    found = metadata_of_scalars(fields)
    assert {key: value for key, value in found.items() if key != "fields"} == named


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("score", 8.1), ("passed", None), ("judge", "the second model"), ("client", "Acme Trading Ltd."), ("p0", 1),
        ("subject", "lending vault, 2,900 lines of Solidity"), ("notes", "TBD"), ("commit", "7be1f0c"),
    ],
)  # fmt: skip
def test_short_values_are_scalars(key: str, value: object) -> None:
    assert is_scalar(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("next", "Ask."), ("why", "no proofs"), ("P0", "No actors"), ("known_issues", "No actors"), ("setup", SECTION),
        ("verdict", "Revise. Sources missing."), ("plan", "第三版报告没有给出市场规模"), ("sources", ["GLEIF"]),
    ],
)  # fmt: skip
def test_texts_are_no_scalars(key: str, value: object) -> None:
    assert not is_scalar(key, value)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\f", "\v", "\x1c", "\r", "\r\n"])
def test_separators_within_a_line_lose_no_text(separator: str, counter: TokenCounter) -> None:
    text = f"# T\n\nfirst{separator}still first{separator}and more\n\n## B\n\nsecond para\n\nlast para\n"
    told = " ".join(chunk.text for chunk in chunks_of("x.md", text, counter))
    assert all(word in told for word in ("first", "still", "more", "second", "last"))


def test_headings_without_text_and_link_definitions_are_kept(counter: TokenCounter) -> None:
    text = (
        "# Known issues\n\nIntro.\n\n## P0: Scout returned 0 actors\n\n## P1: TAM without methodology\n\n"
        f'## Other\n\n{SECTION}\n\n[1]: https://ok.ru/listicle "penalised"\n'
    )
    told = "\n".join(chunk.text for chunk in chunks_of("x.md", text, counter))
    for part in ("Scout returned 0 actors", "TAM without methodology", "https://ok.ru/listicle", "Intro."):
        assert told.count(part) == 1


def test_encoded_data_is_shortened_and_addresses_are_not(counter: TokenCounter) -> None:
    address = "https://example.org/" + "a-long-name/" * 20
    text = f"# Plot\n\n![plot](data:image/png;base64,{'iVBORw0KGgo' * 6000})\n\nSee {address} for the figures.\n"
    chunks = chunks_of("x.md", text, counter)
    assert len(chunks) == 1
    assert address in chunks[0].text


@pytest.mark.parametrize("letter", ["я", "a_b", "中"])
def test_a_chunk_is_never_long_without_tokens(letter: str, counter: TokenCounter) -> None:
    assert all(len(chunk.text) <= 4_100 for chunk in chunks_of("x.md", f"# T\n\n{letter * 60_000}\n", counter))


def test_scripts_without_blanks_are_prose(counter: TokenCounter) -> None:
    issues = [
        {"problem": f"第{number}版报告没有给出市场规模的计算方法，评审认为这是反复出现的问题。" * 3}
        for number in range(60)
    ]
    chunks = chunks_of("x.json", json.dumps({"issues": issues}, ensure_ascii=False), counter)
    assert len(chunks) == 60
    assert all(chunk.text.endswith("问题。") for chunk in chunks)


def test_short_issues_stand_alone(counter: TokenCounter) -> None:
    issues = [{"severity": "P0", "title": "Scout returned 0 actors"}, {"severity": "P1", "title": "TAM unexplained"}]
    assert [chunk.pointer for chunk in chunks_of("x.json", json.dumps({"issues": issues}), counter)] == [
        "/issues/0",
        "/issues/1",
    ]


def test_a_score_is_that_of_its_own_element(counter: TokenCounter) -> None:
    runs = [{"run": f"v{number}", "final_score": number, "summary": SECTION} for number in (3, 8)]
    assert [chunk.final_score for chunk in chunks_of("x.json", json.dumps(runs), counter)] == [3, 8]
    (mixed,) = chunks_of("x.json", json.dumps({"v1": {"final_score": 3, "d": 1}, "v2": {"final_score": 8}}), counter)
    assert mixed.final_score is None


def test_truth_values_are_no_numbers(counter: TokenCounter) -> None:
    (chunk,) = chunks_of("x.json", json.dumps({"passed": [True, False] * 8}), counter)
    assert chunk.text.startswith("passed: true, false, true")


@pytest.mark.parametrize(
    "document",
    [
        {"spec": "v2", "data": {"issues": [{"severity": "P0", "title": "Scout returned 0 actors and went on"}]}},
        {"encoding": "utf-8", "data": {"rows": [{"severity": "P0", "title": "Scout returned 0 actors and went on"}]}},
    ],
)
def test_a_document_with_data_is_no_plot(document: dict[str, object], counter: TokenCounter) -> None:
    told = " ".join(chunk.text for chunk in chunks_of("x.json", json.dumps(document), counter))
    assert "severity: P0" in told


def test_what_is_left_out_is_told(counter: TokenCounter) -> None:
    rows = [{"task": f"scout actors {number}", "score": number / 7} for number in range(2000)]
    chunks = chunks_of("x.json", json.dumps(rows), counter)
    assert [chunk.left_out for chunk in chunks[:-1]] == [0] * (len(chunks) - 1)
    assert chunks[-1].left_out > 50


def test_no_issue_is_dropped_as_noise(counter: TokenCounter) -> None:
    issues = [{"severity": "P1", "issue": f"Short issue {number} found"} for number in range(20)]
    chunks = chunks_of("x.json", json.dumps({"score": 4.2, "issues": issues}), counter)
    assert [chunk.text for chunk in chunks] == [f"severity: P1\nissue: Short issue {n} found" for n in range(20)]
    assert sum(chunk.left_out for chunk in chunks) == 0
    noise = {f"table {number}": {f"cell {cell}": [cell] * 9 for cell in range(60)} for number in range(30)}
    mixed = chunks_of("x.json", json.dumps({"noise": noise, "issues": issues}), counter)
    assert sum(chunk.pointer.startswith("/issues/") for chunk in mixed) == 20
    assert sum(not chunk.pointer.startswith("/issues/") for chunk in mixed) == 12
    assert sum(chunk.left_out for chunk in mixed) > 0
