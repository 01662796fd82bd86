"""Each benchmark at a small size: that it runs and its figures make sense. Speed is not judged here."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from app.interfaces.http.panel import DIST
from app.recall.retrieval.rank.features import TextFeatures
from app.recall.retrieval.rank.presets import PRESETS
from app.settings import Settings
from app.storage.memories.memory import NewMemory, SourceReference
from app.storage.tenants.workspace import Workspace
from app.wiring import Services
from benchmarks import (
    ablation,
    costs,
    evidence,
    fit,
    flows,
    graph,
    history,
    ingestion,
    injection,
    judgements,
    linking,
    locomo,
    million,
    multihop,
    panel,
    pipeline,
    targets,
    write_gate,
)
from benchmarks.figures import Figure
from benchmarks.languages import __main__ as languages
from benchmarks.stage import worker
from tests.conftest import store_database
from tests.panel.browser import MISSING, chromium

pytestmark = pytest.mark.test_all("benchmarks")


@pytest.fixture(autouse=True)
def _results_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.figures.RESULTS", tmp_path / "results")


class Prepared:
    """Stands for a benchmark's embedded Postgres: a migrated database for each data directory, which has the model."""

    def __init__(self, databases: ExitStack, server_url: str, template: str, models: Path) -> None:
        self._databases, self._server_url, self._template, self._models = databases, server_url, template, models
        self._urls: dict[Path, str] = {}

    @contextmanager
    def __call__(self, data: Path) -> Iterator["Started"]:
        if data not in self._urls:
            fresh = store_database(self._server_url, self._template)
            self._urls[data] = self._databases.enter_context(fresh)
            (data / "models").symlink_to(self._models)
        yield Started(self._urls[data])


class Started(NamedTuple):
    """The server of one data directory."""

    url: str

    def start(self) -> str:
        return self.url


@pytest.fixture
def prepared(
    server_url: str, store_template: str, model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Lets benchmarks use the tests' server; that each starts its own is seen in `test_ingestion`."""
    with ExitStack() as databases:
        stand_in = Prepared(databases, server_url, store_template, model_folder)
        monkeypatch.setattr("benchmarks.stage.EmbeddedPostgres", stand_in)
        yield


def by_name(figures: list[Figure]) -> dict[str, float]:
    return {figure.name: figure.value for figure in figures}


def test_ingestion(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.md").write_text(f"# Report {number}\n\nFinding {number} of the judge.\n")
    figures = by_name(ingestion.main(["--folder", str(tmp_path), "--rounds", "1", "--unchanged", "20"]))
    assert figures["distinct chunk texts"] == 5
    assert all(value > 0 for value in figures.values())
    assert (tmp_path / "results" / "ingestion.json").exists()


def test_families_of_injections_that_the_fit_has_not_seen() -> None:
    """Leaves one sixth of the families out, in two languages; `python -m benchmarks.evidence` measures all of them."""
    measured = evidence.left_out(evidence.labelled({"en", "zh"}), families=True, folds=[1])
    assert {item.language for item, _ in measured.attacks} == {"en", "zh"}
    assert {item.family for item, _ in measured.attacks} > {"indirect_judge", "indirect_tool"}
    assert measured.caught(measured.threshold(evidence.FLAGGED)) >= 0.5


def test_injection(tmp_path: Path) -> None:
    figures = by_name(injection.main(["--characters", "2000", "--data", str(tmp_path)]))
    assert figures["own attacks caught"] >= 0.95
    assert figures["own clean texts blocked"] == 0


@pytest.mark.usefixtures("prepared")
def test_languages() -> None:
    figures = by_name(languages.main(["--language", "zh", "--items", "10"]))
    assert figures["Chinese, both, @5"] >= 0.9
    assert {len(languages.items(language)) for language in languages.LANGUAGES} == {100}


@pytest.mark.smoke
def test_judgements(tmp_path: Path) -> None:
    folder = tmp_path / "case" / "run_01"
    folder.mkdir(parents=True)
    (folder / "judgment.json").write_text('{"score": 0.96, "passed": true, "grade": "A"}')
    figures = by_name(judgements.main(["--reports", str(tmp_path)]))
    assert figures["judgments read as stated, of 1"] == 1
    assert figures["issues matched, precision, held out"] > 0.95


@pytest.mark.usefixtures("prepared")
def test_pipeline() -> None:
    figures = by_name(pipeline.main(["--seeds", "2", "--runs", "160", "--development"]))
    assert figures["without exploration: called other than observational, or flagged"] == 0
    assert figures["naive: error"] > figures["estimate: error"]
    assert figures["influence - quality"] > 0


@pytest.mark.usefixtures("prepared")
def test_write_gate() -> None:
    figures = by_name(write_gate.main(["--runs", "41"]))
    assert figures["memories stored"] == figures["new findings"] == 3
    assert figures["refused as echoes"] > 20


@pytest.mark.usefixtures("prepared")
def test_history() -> None:
    figures = by_name(history.main(["--size", "200", "--rounds", "20"]))
    assert all(value > 0 for value in figures.values())
    assert figures["200 chunks: history ÷ (embedding + SQL)"] > 0.5


@pytest.mark.usefixtures("prepared")
def test_graph() -> None:
    figures = by_name(graph.main(["--size", "3", "--rounds", "2"]))
    assert all(value > 0 for value in figures.values())


@pytest.mark.usefixtures("prepared")
def test_panel() -> None:
    if chromium() is None:
        pytest.skip(MISSING)
    if not (DIST / "index.html").is_file():
        pytest.skip("the panel is not built; run `make panel`")
    figures = by_name(
        panel.main(
            ["--memories", "30", "--nodes", "30", "--rounds", "2", "--moves", "4", "--runs", "4", "--sessions", "2"]
        )
    )
    assert all(value > 0 for value in figures.values())


@pytest.mark.usefixtures("prepared")
def test_multihop() -> None:
    if not multihop.QUESTIONS.is_file():
        pytest.skip(f"the evaluation data is not at {multihop.QUESTIONS}")
    figures = by_name(multihop.main(["--documents", "40", "--questions", "4"]))
    assert all(0 <= value <= 1 for value in figures.values())


@pytest.mark.usefixtures("prepared")
def test_locomo() -> None:
    if not locomo.CONVERSATIONS.is_dir():
        pytest.skip(f"the evaluation data is not at {locomo.CONVERSATIONS}")
    figures = by_name(locomo.main(["--conversations", "1", "--questions", "20"]))
    overall = [value for name, value in figures.items() if name.startswith("all")]
    assert 0.4 < overall[0] <= overall[1] <= overall[2] <= 1


@pytest.mark.usefixtures("prepared")
def test_ablation() -> None:
    if not locomo.CONVERSATIONS.is_dir():
        pytest.skip(f"the evaluation data is not at {locomo.CONVERSATIONS}")
    known = set(PRESETS)
    figures = by_name(ablation.main(["--conversations", "1", "--questions", "3", "--work", "conversations"]))
    assert 0 <= figures["conversations @5"] <= figures["conversations @20"] <= 1
    for idea in ablation.ideas():
        assert -1 <= figures[f"without {idea}: conversations @10"] <= 1
    assert set(PRESETS) == known


@pytest.mark.smoke
def test_a_question_is_asked_again_as_of_then() -> None:
    def asked(text: str) -> ablation.Question:
        return ablation.Question(text=text, evidence=frozenset({"a"}), groups=("conversations",))

    day = ablation.told(asked("What did Ann say on 5 May, 2023?"))
    assert day is not None
    assert (day.text, day.now) == ("What did Ann say yesterday?", datetime(2023, 5, 6, 12, tzinfo=UTC))
    month = ablation.told(asked("What did Ann say in March 2023?"))
    assert month is not None
    assert (month.text, month.now) == ("What did Ann say last month?", datetime(2023, 4, 15, 12, tzinfo=UTC))
    assert ablation.told(asked("What did Ann say in March?")) is None


@pytest.mark.usefixtures("prepared")
def test_a_fit_takes_what_gains_on_the_others_and_judges_it_on_what_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fit, "FACTORS", (0.5, 1.5))
    works = [
        ablation.Work(
            workspace=f"{group}-{place}",
            memories=[(body, NewMemory(kind="note", body=body)) for body in ("A red lighthouse.", "A sour cabbage.")],
            questions=[
                ablation.Question(
                    text="Which lighthouse is red?", evidence=frozenset({"A red lighthouse."}), groups=(group,)
                )
            ],
        )
        for place, group in enumerate(("chats", "chats", "paragraphs"))
    ]
    items = asyncio.run(fit.asked(works))
    figures = by_name(fit.measure(items))
    parts = ("chats", "chats-0", "chats-1", "paragraphs")
    assert figures == {f"{part} @{depth}{how}": 1 for part in parts for depth in (5, 10) for how in ("", ", fitted")}
    gain = ("text_features.phrases", 1.5)
    tried = {("", 1.0): [(0, 0), (0, 0), (1, 1)], gain: [(1, 1), (0, 0), (1, 1)]}
    assert fit.fitted(items, tried, lambda item: item.store == "chats-0") == [gain]
    assert fit.fitted(items, tried, lambda item: item.store != "chats-0") == []
    assert fit.changed([gain]).text_features == TextFeatures(phrases=0.4 * 1.5)


@pytest.mark.usefixtures("prepared")
def test_targets() -> None:
    moment = datetime(2024, 1, 10, tzinfo=UTC)
    source = SourceReference(kind="session", uri="s")
    turns = {"a": "The lighthouse of Skagen was lit in 1858.", "b": "The lighthouse of Skagen is made of brick."}
    memories = [
        (name, NewMemory(kind="message", title="Ann", body=body, source=source, ordinal=place, occurred_at=moment))
        for place, (name, body) in enumerate(turns.items())
    ]
    question = ablation.Question(
        text="When was the lighthouse of Skagen lit?", evidence=frozenset({"a"}), groups=("chats",), now=moment
    )
    work = ablation.Work(workspace="chats", memories=memories, questions=[question])
    figures = asyncio.run(targets.measure([work]))
    assert [(figure.name, figure.value, figure.met) for figure in figures] == [
        ("REALTALK: recall@5 of 1 questions", 1, True),
        ("REALTALK: recall@10 of 1 questions", 1, True),
        ("REALTALK: recall@20 of 1 questions", 1, None),
    ]


@pytest.mark.parametrize(("name", "questions"), [("chats", 344), ("duplicates", 777)])
def test_the_sets_of_a_folder_are_read_whole(name: str, questions: int) -> None:
    found = list(ablation.works([name], None, None))
    if not found:
        pytest.skip("the evaluation data is absent")
    assert sum(len(work.questions) for work in found) == questions
    for work in found:
        names = {key for key, _ in work.memories}
        assert all(question.evidence <= names and question.exclude in {None, *names} for question in work.questions)


@pytest.mark.smoke
def test_a_figure_knows_whether_it_meets_its_target() -> None:
    assert Figure(name="a", value=1, at_least=0.5).met is True
    assert Figure(name="a", value=1, at_most=0.5).met is False
    assert Figure(name="a", value=1).met is None


@pytest.mark.usefixtures("prepared")
def test_million(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(million, "READING", 50)
    figures = by_name(million.main(["--size", "300", "--rounds", "5"]))
    assert figures["vector recall@12 against exact"] == 1.0
    assert figures["lexical overlap@12 with true BM25"] > 0.9
    assert figures["search over HTTP, p50"] > 0


@pytest.mark.usefixtures("prepared")
def test_million_beside_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "ALONE_SECONDS", 0.1)
    monkeypatch.setattr(linking, "SETTLE_SECONDS", 0.0)
    figures = by_name(million.main(["--copy", "--size", "400", "--rounds", "10", "--linking", "300"]))
    for step in ("words", "vectors"):
        assert figures[f"search beside links by {step}, p50"] > 0
        assert figures[f"search beside links by {step} ÷ without, p50"] > 0


@pytest.mark.smoke
def test_a_suspended_worker_ends_with_its_stage() -> None:
    with worker(Settings(database_url="postgresql://127.0.0.1:1/none")) as worker_id:
        linker = psutil.Process(worker_id)
        linker.suspend()
    assert not linker.is_running()


@pytest.fixture
def ended() -> Iterator[psutil.Process]:
    """A process that has ended, or soon will."""
    with subprocess.Popen(["true"]) as process:
        yield psutil.Process(process.pid)


@pytest.mark.smoke
async def test_waiting_for_links_ends_with_the_worker(
    services: Services, workspace: Workspace, ended: psutil.Process
) -> None:
    with pytest.raises(RuntimeError, match="the worker ended before it linked"):
        await linking.until_linking(services, workspace, 0, ended)


@pytest.mark.usefixtures("prepared")
def test_costs() -> None:
    figures = by_name(costs.main(["--size", "60", "--rounds", "4"]))
    # The system counts processor time in steps of 10 ms, which few rounds may not reach.
    counted = ("cores", "intake", "processor time")
    assert all(value > 0 or any(word in name for word in counted) for name, value in figures.items())
    assert figures["60 memories: cores of service for 1,000 recalls a second"] < 1_000


@pytest.mark.smoke
def test_a_flow_is_right_only_with_all_its_evidence_in_the_right_place() -> None:
    markdown = "## Relevant History\n\n```\na.md\n› Part\nThe *limit* is 22.\n```\n\n```\nb.md\nAnother.\n```\n"
    row = {"needs": [["limit is 22", "limit is 23"], ["another"]], "first": ["limit is 22"], "never": ["limit is 14"]}
    assert flows.blocks_of(markdown) == ["a.md\n› Part\nThe *limit* is 22.", "b.md\nAnother."]
    assert flows.judged(row, markdown).is_right(row)
    assert not flows.judged({**row, "first": ["another"]}, markdown).is_right({**row, "first": ["another"]})
    assert not flows.judged({**row, "never": ["another"]}, markdown).is_right(row)
    assert flows.judged({**row, "needs": [["limit"], ["lid"]]}, markdown).held == 0.5
    assert flows.judged({"empty": True}, "").is_right({"empty": True})
    assert not flows.judged({"empty": True}, markdown).is_right({"empty": True})


@pytest.mark.usefixtures("prepared")
@pytest.mark.smoke
def test_flows(tmp_path: Path) -> None:
    tree = tmp_path / "lamps"
    for folder, limit in (("reports", 14), ("after", 22)):
        (tree / folder).mkdir(parents=True)
        (tree / folder / f"limit_{limit}.md").write_text(f"# The limit\n\nThe limit of the red lamps is {limit}.\n")
    rows = [
        {"stage": "before", "style": "keywords", "query": "limit of the red lamps", "needs": [["lamps is 14"]]},
        {"stage": "after", "style": "question", "query": "What is the limit of the red lamps?", "needs": [["is 22"]]},
        {"stage": "after", "style": "keywords", "query": "sourdough hydration", "empty": True},
    ]
    (tree / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    figures = by_name(flows.main(["--data", str(tmp_path)]))
    assert figures["right (no fault), of 3"] == 1
    assert figures["silent where nothing applies, of 1"] == 1
    assert flows.main(["--data", str(tmp_path / "none")]) == []
