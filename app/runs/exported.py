"""A line of an existing harness's export as a run. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.errors import InvalidInput
from app.runs.run import NewRun

SCORES = ("wiggum_scores", "round_scores", "scores")
TEXTS = {"task": "task", "task_type": "task_type", "agent": "agent", "final": "verdict", "verdict": "verdict",
         "output": "output", "output_path": "output_path"}  # fmt: skip
LISTS = {"queries": "queries", "issues": "issues", "wiggum_issues": "issues"}
MOMENTS = {"timestamp": "finished_at", "finished_at": "finished_at", "started_at": "started_at"}
NUMBERS = {"lines": "lines", "bytes": "bytes"}


def run_of_line(given: Mapping[str, Any]) -> NewRun:
    """The run; what is not known of it stays in its metadata, word for word.

    Raises:
        InvalidInput: it has no `run_id`, or a value of another type than its key says.
    """
    run_id = given.get("run_id")
    if isinstance(run_id, bool) or not isinstance(run_id, str | int) or not str(run_id).strip():
        raise InvalidInput("run_id", "is missing; it names the run")
    values: dict[str, Any] = {}
    taken = {"run_id"}
    for key, name in TEXTS.items():
        if given.get(key) is not None:
            values[name] = _text(key, given[key])
            taken.add(key)
    for key, name in LISTS.items():
        if given.get(key) is not None:
            values[name] = _texts(key, given[key])
            taken.add(key)
    values |= _numbers(given, taken) | _moments(given, taken)
    scores = _scores(given, taken)
    final_score = given.get("final_score")
    if final_score is not None:
        values["final_score"] = _number("final_score", final_score)
        taken.add("final_score")
    elif scores:
        values["final_score"] = scores[-1]
    metadata = {key: value for key, value in given.items() if key not in taken}
    return NewRun(run_id=str(run_id), round_scores=scores or None, metadata=metadata or None, **values)


def _scores(given: Mapping[str, Any], taken: set[str]) -> tuple[float, ...]:
    for key in SCORES:
        value = given.get(key)
        if isinstance(value, list):
            taken.add(key)
            return tuple(_number(key, item) for item in value if item is not None)
    return ()


def _numbers(given: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    found = {name: given[key] for key, name in NUMBERS.items() if isinstance(given.get(key), int)}
    taken.update(found)
    return found


def _moments(given: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, name in MOMENTS.items():
        moment = as_moment(given.get(key))
        if moment is not None:
            found.setdefault(name, moment)
            taken.add(key)
    return found


def as_moment(value: Any) -> datetime | None:  # noqa: ANN401 - any JSON value
    """A date as exports write it; None where it is none."""
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _text(key: str, value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict | list):
        raise InvalidInput(key, "must be a text")
    return str(value)


def _texts(key: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise InvalidInput(key, "must be a list of texts")
    return tuple(item if isinstance(item, str) else str(item) for item in value)


def _number(key: str, value: Any) -> float:  # noqa: ANN401 - any JSON value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(key, "must be a number")
    return float(value)
