"""Which tests wait for `make test-all`, and on which tier each of the others stands.

A heavy test is marked with its subject: `@pytest.mark.test_all("kills")`. `make test` leaves it out and says how many
wait, by subject; `--all` runs it. `@pytest.mark.smoke` keeps a test of a marked file, or one case of a marked test, in
`make test`: each subject has some. The tier of a test follows from what it asks for: nothing (`pure`), a database
(`store`), a service in the process (`doors`), or processes and a browser (`system`).
"""

from collections import Counter
from collections.abc import Iterable

import pytest

SUBJECTS = {
    "benchmarks": "each benchmark at a small size",
    "browser": "further journeys through the panel",
    "contracts": "contracts of adapters in each form, and adapters that are broken on purpose, which they must notice",
    "documents": "the blocks of every page of the documents",
    "kills": "processes, servers and jobs that are killed or interrupted",
    "migrations": "older schemas with their rows",
    "processes": "starts of whole processes whose parts are tested in the process",
    "routes": "each route with many invented requests",
}
TIERS = ("pure", "store", "doors", "system")
SYSTEM = ("tests/panel/", "tests/interfaces/cli/", "tests/client/", "tests/chaos/", "tests/test_documented_blocks.py")
"""Where tests start processes of their own."""
WAITING = pytest.StashKey[Counter[str]]()
"""How many tests wait, by subject."""
SENT = "waiting"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs everything."""
    parser.addoption("--all", action="store_true", help="run also the tests that are marked test_all")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    config.stash[WAITING] = Counter()
    config.addinivalue_line("markers", f"test_all(subject): waits for `make test-all`; one of {', '.join(SUBJECTS)}")
    config.addinivalue_line("markers", "smoke: stays in `make test`, although its file or its other cases wait")
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier}: stands on this tier; it is given by what a test asks for")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its tier, and take out those that wait."""
    run: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        item.add_marker(tier_of(item.nodeid, getattr(item, "fixturenames", ())))
        subject = _subject(item)
        if subject and not config.getoption("--all"):
            config.stash[WAITING][subject] += 1
            left_out.append(item)
        else:
            run.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = run


def tier_of(nodeid: str, fixtures: Iterable[str]) -> str:
    """Return the tier of a test that asks for these fixtures."""
    if nodeid.startswith(SYSTEM):
        return "system"
    asked = set(fixtures)
    if "server" in asked:
        return "doors"
    return "store" if "server_url" in asked else "pure"


def _subject(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("test_all")
    if mark is None or item.get_closest_marker("smoke"):
        return None
    if mark.args not in {(name,) for name in SUBJECTS}:
        raise pytest.UsageError(f"{item.nodeid}: test_all takes one of {', '.join(SUBJECTS)}; got {mark.args}")
    return str(mark.args[0])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that distributes the tests what waits."""
    sent = getattr(session.config, "workeroutput", None)
    if sent is not None:
        counted: Counter[str] = session.config.stash[WAITING]
        sent[SENT] = dict(counted)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what a test process left out: each has collected all tests."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]  # xdist has no types
    counted: Counter[str] = config.stash[WAITING]
    counted |= Counter(getattr(node, "workeroutput", {}).get(SENT, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests wait."""
    waiting: Counter[str] = config.stash[WAITING]
    if waiting:
        counts = ", ".join(f"{subject} {count}" for subject, count in sorted(waiting.items()))
        terminalreporter.write_line(f"{waiting.total()} tests wait for `make test-all`: {counts}")
