"""`session` and `case`: lists and shows them."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.interfaces.cli.client import (
    JsonOption,
    Moment,
    PlaceOptions,
    expand_options,
    group_in,
    in_utc,
    print_json,
    print_list,
    without_none,
)

if TYPE_CHECKING:
    from priors_client.models import (
        CaseIssueView,
        CaseSummary,
        CaseVersion,
        MessageView,
        SessionDetailView,
        StoredSession,
        ToolView,
    )

commands = typer.Typer()
sessions = group_in(commands, "session", "List sessions and show one.\n\nChanges nothing.")
_ACT_CHARACTERS = 100


@sessions.command("list")
@expand_options
def list_sessions(
    *,
    path: Annotated[str | None, typer.Option("--path", help="Only sessions that created or changed this file.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="Only sessions with this in their title or id.")] = None,
    since: Moment = None,
    until: Moment = None,
    limit: Annotated[int, typer.Option("--limit", help="Sessions at most.")] = 50,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the sessions, the latest first.

    Changes nothing.
    """
    conditions = without_none(path=path, text=text, since=in_utc(since), until=in_utc(until))
    with place.client() as client:
        found = client.admin.sessions(**conditions, limit=limit).sessions
    print_list(found, _session_line, nothing="no sessions", as_json=as_json)


@sessions.command("show")
@expand_options
def show_session(
    session_id: Annotated[str, typer.Argument(metavar="ID")], *, place: PlaceOptions, as_json: JsonOption = False
) -> None:
    """Print a session: its turns, the tools that they used, and what it created or changed.

    Changes nothing.
    """
    with place.client() as client:
        route = client.admin.session  # a call by this name is one of the database to the tests of the house
        answer = route(session_id)
    if as_json:
        print_json(answer)
    else:
        typer.echo("\n".join(_lines(answer)))


def _moment(item: "StoredSession | SessionDetailView") -> str:
    return (item.started_at or item.created_at).strftime("%Y-%m-%d %H:%M")


def _session_line(item: "StoredSession") -> str:
    return f"{_moment(item)}  {item.id}  {item.turns} turns  {item.title}"


def _lines(item: "SessionDetailView") -> list[str]:
    lines = [item.title or item.id, f"{item.id}, {item.format}, {_moment(item)} UTC, {item.turns} turns"]
    if item.artifacts:
        lines += ["", "created or changed:"]
    for artifact in item.artifacts:
        name = f"{artifact.path} › {artifact.symbol}" if artifact.symbol else artifact.path
        turns = ", ".join(f"#{ordinal}" for ordinal in artifact.messages)
        lines.append(f"  {name} ({', '.join(artifact.actions)}; {turns})")
    for turn in item.messages:
        lessons = [f"  → {cue.kind}: {cue.lesson}" for cue in item.cues if cue.message == turn.ordinal]
        lines += ["", *_lines_of_turn(turn), *lessons]
    return lines


def _lines_of_turn(turn: "MessageView") -> list[str]:
    at = "" if turn.at is None else turn.at.strftime(" %H:%M")
    flagged = " [suspect: in no history]" if turn.suspect else ""
    head = f"#{turn.ordinal} {turn.role}{at}{flagged}"
    return [head, *([turn.text] if turn.text else []), *(f"  · {_act(tool)}" for tool in turn.tools)]


def _act(tool: "ToolView") -> str:
    """Returns what a tool was used for: its name with its first argument, `Edit app/db.py`."""
    first = next((str(value) for value in tool.input.values() if value), "")
    return f"{tool.name} {' '.join(first.split())[:_ACT_CHARACTERS]}".strip()


_cases = group_in(commands, "case", "List judged test cases and show one.\n\nChanges nothing.")


@_cases.command("list")
@expand_options
def list_cases(*, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Print the judged test cases.

    Changes nothing.
    """
    with place.client() as client:
        found = client.admin.cases()
    print_list(found, _case_line, nothing="no cases", as_json=as_json)


@_cases.command("show")
@expand_options
def show_case(
    name: Annotated[str, typer.Argument(metavar="CASE", help="Its name, in any spelling.")],
    *,
    place: PlaceOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the history of a judged test case: versions, scores, verdicts, and its issues over them.

    Changes nothing.
    """
    with place.client() as client:
        case = client.admin.case(name)
    if as_json:
        print_json(case)
        return
    issues = [_issue_line(issue) for issue in case.issues] or ["no issues"]
    typer.echo("\n".join([case.title, "", *map(_version_line, case.versions), "", *issues]))


def _case_line(item: "CaseSummary") -> str:
    counts = f"{item.versions} versions, {item.open_issues} open issues, {item.recurring_issues} recurring"
    return f"{item.case}: {counts}"


def _version_line(version: "CaseVersion") -> str:
    date = f" ({version.judged_at:%Y-%m-%d})" if version.judged_at else ""
    change = "" if version.change is None else f" ({version.change:+.1f})"
    score = "no score" if version.score is None else f"{version.score:.1f}{change}"
    passed = {True: "passed", False: "failed", None: version.grade}[version.passed]
    return f"- {version.version}{date}: " + ", ".join(filter(None, (score, version.verdict or passed)))


def _issue_line(issue: "CaseIssueView") -> str:
    seen = f"in {', '.join(issue.versions)}" if issue.versions else ""
    return f"- {issue.title}: " + ", ".join(filter(None, (issue.state, issue.severity, seen)))
