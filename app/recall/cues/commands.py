"""Reads command lines in a plan: program, subcommand, options, arguments. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from app.foundation.text.words import STOP_WORDS

QUOTED = re.compile(r"`([^`\n]{3,400})`")
"""A piece of code in a sentence."""
SEPARATORS = frozenset({"&&", "||", ";", "|", "&"})
ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*")
_WRAPPERS = frozenset({"sudo", "time", "nohup", "exec", "env", "xargs"})
"""Programs that only start the one whose name follows."""
_PLACES = frozenset({"cd", "pushd", "popd", "export", "set", "source", "."})
"""Programs that only choose where, or with what, the next one runs."""
_PROGRAMS = frozenset(
    """
    alembic ansible apt apt-get aws awk az bash brew bun bundle cargo cat celery chmod chown cmake composer conda cp
    curl dbt deno docker docker-compose dotnet dvc fastlane find firebase flutter fly gcloud gem gh git gradle grep
    gsutil heroku helm http java jest jq kill kubectl ls make minikube mkdir mv mvn mypy mysql nginx node npm npx nx
    pdm pg_dump php pip pip3 pipx playwright pnpm poetry prisma psql pulumi pytest python python3 rails rake redis-cli
    rm rsync ruby ruff scp sed sh sqlite3 ssh supabase systemctl tar terraform tofu touch tox tsc turbo uv uvx uvicorn
    vercel vite vitest wget yarn
    """.split()  # noqa: SIM905 - a hundred quoted words cannot be read
)
_ENGLISH = frozenset(
    "cat export find http java kill make node php python rake ruby set source tar touch".split()  # noqa: SIM905 - as above
)
"""Programs whose names begin sentences too: “kill feature flags”, “node upgrade next sprint”."""
_SHELL = re.compile(
    r"--?[A-Za-z].*|[.~]?/.*|\.{1,2}|.*\w/|.*\w\.[A-Za-z]\w*|\w+[:=]\S+|[|&<>]+|%?\d+|.*[$*].*", re.DOTALL
)
"""An option, a path, a file, a task, an assignment, an operator or a number of a process: no sentence has it."""
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.*))?")
_MEANINGS: Mapping[tuple[str, str, str], str] = {
    ("git", "push", "f"): "force", ("git", "push", "force-with-lease"): "force", ("git", "branch", "D"): "delete force",
    ("git", "add", "A"): "all", ("git", "commit", "a"): "all", ("git", "commit", "n"): "no verify hooks",
    ("git", "commit", "no-verify"): "skip hooks", ("git", "clean", "f"): "delete untracked",
    ("docker", "compose", "v"): "volumes delete", ("docker", "down", "v"): "volumes delete",
    ("pip", "install", "U"): "upgrade", ("npm", "install", "g"): "global",
}  # fmt: skip
"""Words of options that have one letter, or do not say what they do."""
_ACTS: Mapping[str, str] = {"rm": "delete remove", "mv": "move rename", "cp": "copy", "kill": "stop process"}
_ADDED: Mapping[str, str] = {
    **dict.fromkeys(("install", "add", "i", "require"), "install add dependency package"),
    **dict.fromkeys(("uninstall", "remove", "rm"), "remove dependency package"),
}
_MANAGERS = frozenset({"bun", "cargo", "gem", "npm", "pdm", "pip", "pip3", "pipx", "pnpm", "poetry", "uv", "yarn"})


class ShellCommand(NamedTuple):
    """A command of a line."""

    program: str
    words: Sequence[str]
    """Its subcommand and arguments."""
    options: Sequence[str]
    """Their names; letters that stand together are separate ones."""

    @property
    def spoken(self) -> str:
        """The words that say what it does: its own, and those of its options."""
        meanings = [_MEANINGS.get((self.program, word, name), "") for word in self.words[:2] for name in self.options]
        acts = [_ACTS.get(self.program, "")]
        if self.program in _MANAGERS and len(self.words) > 1:
            acts.append(_ADDED.get(self.words[0], ""))
        named = [name for name in self.options if len(name) > 1]
        return " ".join(filter(None, [self.program, *self.words, *named, *meanings, *acts]))


@lru_cache(maxsize=64)
def commands_in(text: str) -> Sequence[ShellCommand]:
    """Returns the commands that are lines of a text, or stand in it as code."""
    pieces = [*filter(_is_command, text.splitlines()), *filter(_from_program, QUOTED.findall(text))]
    return tuple(command for piece in pieces for command in _commands_of(piece))


def has_command(text: str) -> bool:
    """Tells if a line of a text is a command."""
    return any(map(_is_command, text.splitlines()))


def spoken_form(text: str) -> str:
    """Returns a text with the words of the commands in it."""
    return "\n".join([text, *(command.spoken for command in commands_in(text))])


def _is_command(line: str) -> bool:
    """Tells if a line begins with a program, and does not go on as a sentence does."""
    words = _from_program(line)
    if not words or words[0] not in _ENGLISH or (words[0] == "make" and not words[2:]):
        return bool(words)
    return any(map(_SHELL.fullmatch, words[1:]))


def _from_program(text: str) -> Sequence[str]:
    """Returns the words of a text from its program on; none if it begins with none, or has a sentence's words."""
    words = _without_wrappers(text.split())
    if not words or not (words[0] in _PROGRAMS | _PLACES or words[0].startswith("./")):
        return ()
    return () if any(word in STOP_WORDS for word in words[1:3]) else words


def _commands_of(line: str) -> Iterator[ShellCommand]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = line.split()
    part: list[str] = []
    for token in [*tokens, ";"]:
        if token not in SEPARATORS:
            part.append(token)
            continue
        words = _without_wrappers(part)
        if words and words[0] not in _PLACES:
            yield _command_of(words)
        part = []


def _without_wrappers(words: Sequence[str]) -> Sequence[str]:
    """Returns the words of a command without the assignments and the programs before its own program."""
    while words and (ASSIGNED.fullmatch(words[0]) or words[0] in _WRAPPERS):
        words = words[1:]
    return words


def _command_of(words: Sequence[str]) -> ShellCommand:
    options = [match for word in words[1:] if (match := _OPTION.fullmatch(word))]
    letters = [name for match in options for name in ([match["name"]] if match[0][:2] == "--" else [*match["name"]])]
    given = [word for word in words[1:] if not _OPTION.fullmatch(word)] + [m["value"] for m in options if m["value"]]
    return ShellCommand(words[0].rpartition("/")[2], tuple(given), tuple(letters))
