"""The programs that `priors connect` knows: the files of each, their forms, and what Priors writes into them. Pure."""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from app.errors import InvalidInput
from app.foundation.values import frozen
from app.interfaces.cli.edits import read_jsonc, with_table, with_value
from app.interfaces.cli.hooks import NO_LESSONS

_NAME = "priors"
"""The name of the server in each program, and of the command on the PATH."""
KEY = "PRIORS_API_KEY"
_PASSED_ON = (KEY, "PRIORS_URL", "PRIORS_DATA_DIR", "PRIORS_WORKSPACE", "XDG_STATE_HOME", "XDG_DATA_HOME")
"""Variables by which `priors mcp` finds its service."""
_TOML = ".toml"
HOOK_SECONDS = 10
PROMPT, BEFORE_TOOL = "UserPromptSubmit", "PreToolUse"
_STOP = "Stop"
"""The event at which the agent is asked for lessons, where the user wants that. Codex has none of a session's end."""
EVENTS = ("SessionStart", PROMPT, BEFORE_TOOL, "PreCompact", _STOP, "SessionEnd")
"""The events of Claude Code and Codex that are answered."""
_OWN_HOOK = re.compile(r"\bpriors['\"]? hook\b")


@frozen
class Connected:
    """Tells what is written into a program's files."""

    has_key: bool
    """True if the service wants a key."""
    command: str
    """The path of the command `priors`, for files that no team shares."""
    lessons: bool = False


@frozen
class Program:
    """A program that speaks MCP, and its files in a project."""

    title: str
    file: str
    """Its file of servers, which a team may commit: it names no address and no path of a machine."""
    servers: str
    """The name of the object that holds the servers."""
    variables: tuple[tuple[str, str], ...] = ()
    """Variables of the environment that its server gets, in the program's form."""
    key: str = ""
    """The form in which a variable gets the key from the environment; empty if the server inherits it."""
    more: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Fields that its server has beside the command, each a list."""
    hooks_file: str = ""
    """Its file of hooks in a project; empty if it has none."""
    hooks_are_personal: bool = False
    """True if no team shares the file of hooks, so that it may name the path of the command."""
    events: tuple[str, ...] = EVENTS
    """The events of its hooks that are answered."""
    tried_event: str = PROMPT
    """The event whose hook is tried once it is written."""
    hook_timeout: int = HOOK_SECONDS
    """The longest time of a hook, in the program's unit."""
    hooks_version: int | None = None
    """The version that its file of hooks states; None for a file that states none, and has hooks in groups."""
    tools: str = ""
    """Its tools that run commands or change files, as a pattern: their use is announced to a hook."""
    next_step: str = ""

    def entry(self, given: Connected) -> dict[str, Any]:
        """Returns the server as this program's file names it: a command, which finds the service by itself.

        No key is written into a file.
        """
        variables = {**dict(self.variables), **({KEY: self.key} if given.has_key and self.key else {})}
        lists = {"args": ["mcp"], **{name: list(items) for name, items in self.more}}
        return {"command": _NAME, **lists, **({"env": variables} if variables else {})}

    def with_entry(self, text: str, given: Connected | None) -> str:
        """Returns the text of the file with the server; without it, if nothing is given.

        Raises:
            InvalidInput: the file cannot be changed safely.
        """
        entry, stored = None if given is None else self.entry(given), self._stored_entry(text)
        # One that names an address would have both, and programs refuse that, or take the address.
        is_address = bool(stored) and "command" not in stored
        if self.file.endswith(_TOML):
            text = with_table(text, (self.servers, _NAME), None, self.file) if is_address else text
            return with_table(text, (self.servers, _NAME), entry, self.file)
        if entry is None or is_address or not stored:
            return with_value(text, (self.servers, _NAME), entry, self.file)
        # The rest of the server is a person's.
        own = ("command", "args", *dict(self.more))
        for place in [*((name,) for name in own), *(("env", name) for name in (*dict(self.variables), KEY))]:
            text = with_value(text, (self.servers, _NAME, *place), _value_at(entry, place), self.file)
        return text

    def _stored_entry(self, text: str) -> dict[str, Any]:
        """Returns the server that a text names; {} if it names none, or in a form that the edit refuses."""
        try:
            entry = self.entry_in(text)
        except (KeyError, TypeError, tomllib.TOMLDecodeError):
            return {}
        return entry if isinstance(entry, dict) else {}

    def entry_in(self, text: str) -> dict[str, Any]:
        """Returns the server that a text of the file names."""
        read = tomllib.loads(text) if self.file.endswith(_TOML) else read_jsonc(text, self.file)
        entry: dict[str, Any] = read[self.servers][_NAME]
        return entry


def _value_at(entry: Mapping[str, Any], place: Sequence[str]) -> Any:  # noqa: ANN401 - any value of JSON
    """Returns the value at a place; None if there is none."""
    found: Any = entry
    for name in place:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "claude-code": Program(
            title="Claude Code",
            file=".mcp.json",
            servers="mcpServers",
            key=f"${{{KEY}}}",
            hooks_file=".claude/settings.local.json",
            hooks_are_personal=True,
            events=(*EVENTS, "SubagentStart"),
            tools="Bash|Edit|MultiEdit|Write|NotebookEdit|Task|Agent",
            next_step="start Claude Code in this folder; it asks once whether to use the server priors",
        ),
        "codex": Program(
            title="Codex",
            file=".codex/config.toml",
            servers="mcp_servers",
            # Codex passes a dozen variables on, and those that are named here.
            more=(("env_vars", _PASSED_ON),),
            hooks_file=".codex/hooks.json",
            tools="Bash|apply_patch",
            next_step="start Codex in this folder, trust the project, and trust the hooks that /hooks shows",
        ),
        "cursor": Program(
            title="Cursor",
            file=".cursor/mcp.json",
            servers="mcpServers",
            # Its servers run in another folder.
            variables=(("CURSOR_PROJECT_DIR", "${workspaceFolder}"),),
            key=f"${{env:{KEY}}}",
            hooks_file=".cursor/hooks.json",
            # No other event surfaces context to the model (forum.cursor.com/t/155689).
            events=("sessionStart",),
            tried_event="sessionStart",
            hooks_version=1,
            next_step="open this folder in Cursor, and switch the server priors on in its settings",
        ),
        "gemini-cli": Program(
            title="Gemini CLI",
            file=".gemini/settings.json",
            servers="mcpServers",
            # Its servers do not inherit what looks like a secret.
            key=f"${KEY}",
            hooks_file=".gemini/settings.json",
            # Its other events take no context, or only after the act.
            events=("SessionStart", "BeforeAgent"),
            tried_event="BeforeAgent",
            hook_timeout=HOOK_SECONDS * 1_000,
            next_step="start Gemini CLI in this folder, and see /mcp and /hooks",
        ),
        "zed": Program(
            title="Zed",
            file=".zed/settings.json",
            servers="context_servers",
            next_step="open this folder in Zed; a new project must be trusted first",
        ),
    }
)
"""Each program as its documentation has it: code.claude.com/docs/en/mcp and hooks, developers.openai.com/codex/mcp and
hooks, cursor.com/docs/mcp, geminicli.com/docs/tools/mcp-server and hooks/reference, zed.dev/docs/ai/mcp (all read in
November 2026). Cursor's hooks are as those of other projects that use them."""


def _hook_command(program: Program, event: str, given: Connected) -> str:
    """Returns the command line of a hook, which finds the service by the record of the connected projects."""
    agent = next(name for name, known in PROGRAMS.items() if known is program)
    silent = [NO_LESSONS] if event == _STOP and not given.lessons else []
    return shlex.join([given.command if program.hooks_are_personal else _NAME, "hook", "--agent", agent, *silent])


def with_hooks(program: Program, text: str, given: Connected | None) -> str:
    """Returns the text of a program's file of hooks with Priors' own; without them, if nothing is given.

    Raises:
        InvalidInput: the file cannot be changed safely.
    """
    name = program.hooks_file
    stored = read_jsonc(text, name).get("hooks", {})
    for event in program.events:
        # A form that this does not know is left to `with_value`, which refuses it.
        groups = stored.get(event, []) if isinstance(stored, dict) else []
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            raise InvalidInput(
                name, f"has hooks.{event} that is no list of objects, so nothing is changed; mend it first"
            )
        kept = [group for group in groups if not _is_own(group)]
        if given is not None:
            kept.append(_hook(program, event, given))
        text = with_value(text, ("hooks", event), kept or None, name)
    if program.hooks_version is None or (given is None and "hooks" in read_jsonc(text, name)):
        return text
    return with_value(text, ("version",), None if given is None else program.hooks_version, name)


def _hook(program: Program, event: str, given: Connected) -> dict[str, Any]:
    """Returns the hook of an event, in a group of its own where the program groups hooks."""
    hook = {"command": _hook_command(program, event, given), "timeout": program.hook_timeout}
    if program.hooks_version is not None:
        return hook
    return {**({"matcher": program.tools} if event == BEFORE_TOOL else {}), "hooks": [{"type": "command", **hook}]}


def _is_own(group: Mapping[str, Any]) -> bool:
    """Tells whether a group has Priors' hook and no other; a hook may stand without a group."""
    hooks = group.get("hooks", [group])
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(isinstance(hook, dict) and _OWN_HOOK.search(str(hook.get("command"))) for hook in hooks)
