"""`case list`, `case show`."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.interfaces.cli.options import JsonOption, expand_options, group_in, print_json, print_list
from app.interfaces.cli.service import PlaceOptions

if TYPE_CHECKING:
    from priors_client.models import CaseIssueView, CaseSummary, CaseVersion

commands = typer.Typer()
_cases = group_in(commands, "case", "List judged test cases and show one.\n\nChanges nothing.")


@_cases.command("list")
@expand_options
def list_(*, place: PlaceOptions, as_json: JsonOption = False) -> None:
    """Print the judged test cases.

    Changes nothing.
    """
    with place.client() as client:
        found = client.admin.cases()
    print_list(found, _case_line, nothing="no cases", as_json=as_json)


@_cases.command()
@expand_options
def show(
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
