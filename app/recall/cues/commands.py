"""Reads command lines in a plan: program, subcommand, options, arguments. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import dropwhile, groupby
from typing import NamedTuple

from msgspec import Struct

from app.foundation.text.data import read_toml
from app.foundation.text.words import STOP_WORDS

QUOTED = re.compile(r"`([^`\n]{3,400})`")
"""A piece of code in a sentence."""
SEPARATORS = frozenset({"&&", "||", ";", "|", "&"})
ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*")
_SHELL = re.compile(
    r"--?[A-Za-z].*|[.~]?/.*|\.{1,2}|.*\w/|.*\w\.[A-Za-z]\w*|\w+[:=]\S+|[|&<>]+|%?\d+|.*[$*].*", re.DOTALL
)
"""An option, a path, a file, a task, an assignment, an operator or a number of a process: no sentence has it."""
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.*))?")


class ShellWords(Struct, frozen=True):
    """The words of `commands.toml`."""

    wrappers: frozenset[str]
    places: frozenset[str]
    programs: frozenset[str]
    english: frozenset[str]
    managers: frozenset[str]
    meanings: Mapping[str, str]
    acts: Mapping[str, str]
    packages: Mapping[str, str]


@cache
def shell_words() -> ShellWords:
    """Reads the words."""
    return read_toml("app.recall.cues", "commands.toml", ShellWords)


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
        known = shell_words()
        acts = [f"{self.program} {word} {name}" for word in self.words[:2] for name in self.options]
        meanings = [known.meanings.get(act, "") for act in acts] + [known.acts.get(self.program, "")]
        if self.program in known.managers and len(self.words) > 1:
            meanings.append(known.packages.get(self.words[0], ""))
        named = [name for name in self.options if len(name) > 1]
        return " ".join(filter(None, [self.program, *self.words, *named, *meanings]))


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
    if not words or words[0] not in shell_words().english or (words[0] == "make" and not words[2:]):
        return bool(words)
    return any(map(_SHELL.fullmatch, words[1:]))


def _from_program(text: str) -> Sequence[str]:
    """Returns the words of a text from its program on; none if it begins with none, or has a sentence's words."""
    words = _without_wrappers(text.split())
    if not words or not (words[0] in shell_words().programs | shell_words().places or words[0].startswith("./")):
        return ()
    return () if any(word in STOP_WORDS for word in words[1:3]) else words


def _commands_of(line: str) -> Iterator[ShellCommand]:
    return (_command_of(words) for words in words_of_commands(line) if words[0] not in shell_words().places)


def words_of_commands(line: str) -> Iterator[Sequence[str]]:
    """Yields the words of each command of a shell line, from its program on."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = line.split()
    for is_end, part in groupby(tokens, SEPARATORS.__contains__):
        if not is_end and (words := _without_wrappers(list(part))):
            yield words


def _without_wrappers(words: Sequence[str]) -> Sequence[str]:
    """Returns the words of a command without the assignments and the programs before its own program."""
    return list(dropwhile(lambda word: ASSIGNED.fullmatch(word) or word in shell_words().wrappers, words))


def _command_of(words: Sequence[str]) -> ShellCommand:
    options = [match for word in words[1:] if (match := _OPTION.fullmatch(word))]
    letters = [name for match in options for name in ([match["name"]] if match[0][:2] == "--" else [*match["name"]])]
    given = [word for word in words[1:] if not _OPTION.fullmatch(word)] + [m["value"] for m in options if m["value"]]
    return ShellCommand(words[0].rpartition("/")[2], tuple(given), tuple(letters))
