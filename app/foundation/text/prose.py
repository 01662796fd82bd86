"""Reads prose: the grammar of Markdown, sentences, and what was said in a turn rather than pasted into it. Pure."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sentencex  # type: ignore[import-untyped] # the package has no types
from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
"""Parses blocks only: nobody needs inline markup from it, and parsing it would double the time."""
_PLAIN = re.compile(r"[^\W\d_][^\n\r]*")
"""A text of one line that begins with a letter is a paragraph. Parsing one takes 0.1 ms."""
_LONGEST = 20_000
"""Characters that are read of one line; a longer line is no prose."""
FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}+(?!.*`)|~{3,}+)[ \t]*(?P<tag>\S*).*$", re.MULTILINE)
"""The first or last line of a fence."""
_PROSE_TAGS = frozenset({"md", "markdown", "mdx", "text", "txt", "plaintext"})
"""Tags of fences that hold no code."""
_NESTING_TAGS = frozenset({"", "md", "markdown", "mdx"})
"""Tags of fences that may hold the beginning of another one."""
_TAGGED = re.compile(r"^ {0,3}(?:`{3,}+(?!.*`)|~{3,}+)[ \t]*\S", re.MULTILINE)
"""The first line of a fence with a tag."""
_DEEPEST_FENCE = 8
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n.{0,20000}?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
HEADING = re.compile(r"^ {0,3}(?P<marks>#{1,6})[ \t]+(?P<text>.*)$", re.MULTILINE)
"""The line of a heading; its text may end with closing marks."""
ITEM = re.compile(r"^[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]+(?:\[(?P<done>[ xX])\][ \t]+)?", re.MULTILINE)
"""The mark before an item of a list."""
ROW = re.compile(r"^[ \t]*\|(.+)\|[ \t]*$", re.MULTILINE)
"""A row of a table with its cells."""
_RULE = re.compile(r"^[\s|:+=_*-]+$")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)")
_EMPHASIS = re.compile(r"(\*\*|__|`+|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w))")


class MarkdownBlock(NamedTuple):
    """A block at the top level of a text."""

    kind: str
    """`heading`, `paragraph`, `list`, `table`, `fence`, or another name of the parser's."""
    first: int
    """The number of its first line, from 0."""
    last: int
    """The number of the line after it."""
    depth: int
    """The level of a heading, 1 to 6; 0 of another block."""
    heading: str
    items: Sequence[tuple[int, int]]
    """The first line of each item of a list, and the line after it."""


def blocks(text: str) -> Iterator[MarkdownBlock]:
    """Yields the blocks of a text in their order; lines between them define links, or are blank."""
    if _PLAIN.fullmatch(text):
        yield MarkdownBlock("paragraph", 0, 1, 0, "", ())
        return
    tokens = _PARSER.parse(_with_bare_ends(text))
    for place, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        kind = token.type.removesuffix("_open").removeprefix("bullet_").removeprefix("ordered_")
        depth = int(token.tag[1]) if kind == "heading" else 0
        heading = " ".join(tokens[place + 1].content.split()) if depth else ""
        yield MarkdownBlock(kind, token.map[0], token.map[1], depth, heading, list(_items(tokens, place)))


def _with_bare_ends(text: str) -> str:
    """Returns a text whose fences end where their writers meant: at a mark with a tag before a blank line, too.

    Such an end is no end in CommonMark, and the rest of the file would be code: 20 of 1,073 files of public report
    trees have one. A fence that holds Markdown may contain others.
    """
    if len(_TAGGED.findall(text)) < 2:  # noqa: PLR2004 - a beginning and an end
        return text
    lines = text.split("\n")
    opened: re.Match[str] | None = None
    for place, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark is None:
            continue
        if opened is None:
            opened = mark
        elif _closes(mark["mark"], opened["mark"]):
            is_above_blank = not "".join(lines[place + 1 : place + 2]).strip()
            if not mark["tag"] or (is_above_blank and opened["tag"].lower() not in _NESTING_TAGS):
                lines[place], opened = line[: mark.end("mark")], None
    return "\n".join(lines)


def _closes(mark: str, opened: str) -> bool:
    return mark[0] == opened[0] and len(mark) >= len(opened)


def _items(tokens: Sequence[Token], place: int) -> Iterator[tuple[int, int]]:
    for token in itertools.takewhile(lambda token: token.level, map(tokens.__getitem__, range(place + 1, len(tokens)))):
        if token.type == "list_item_open" and token.level == 1 and token.map:
            yield token.map[0], token.map[1]


def plain(text: str) -> str:
    """Removes Markdown's emphasis and links, and joins white space."""
    return " ".join(_EMPHASIS.sub("", _LINK.sub(r"\1", text)).split())


def without_code(lines: Sequence[str]) -> list[str]:
    """Removes closed fences, unless they are tagged as prose or are the whole text."""
    lines = _with_bare_ends("\n".join(lines)).split("\n")
    hidden = bytearray(len(lines))
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for start, end, tag in _fences(lines):
        is_all = (start, end) == (filled[0], filled[-1])
        if tag not in _PROSE_TAGS and not is_all:
            hidden[start:end] = b"\1" * (end - start)
    return [line for line, is_hidden in zip(lines, hidden, strict=True) if not is_hidden and not FENCE.match(line)]


def _fences(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yields first line, last line and tag of each closed fence; a fence that holds Markdown may contain others."""
    opened: list[tuple[int, str, str]] = []
    for place, line in enumerate(lines):
        found = FENCE.match(line)
        if found is None:
            continue
        mark, tag = found["mark"], found["tag"].strip("{.}").lower()
        depth = None if tag else _closed_depth(mark, [other for _, other, _ in opened])
        if depth is not None:
            yield opened[depth][0], place, opened[depth][2]
            del opened[depth:]
        elif not opened or (opened[-1][2] in {"", *_PROSE_TAGS} and len(opened) < _DEEPEST_FENCE):
            opened.append((place, mark, tag))


def open_fence(line: str, fence: str) -> str:
    """Returns the mark of the code block that is open after a line; "" if none is."""
    match = FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if _closes(match[1], fence) and line.strip() == match[1] else fence


def _closed_depth(mark: str, opened: Sequence[str]) -> int | None:
    """Returns the fence that a mark closes: the innermost of its length, or else the innermost if that is shorter."""
    same = [depth for depth, other in enumerate(opened) if other == mark]
    if same:
        return same[-1]
    return len(opened) - 1 if opened and mark.startswith(opened[-1]) else None


_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")
"""White space of more than one byte: after an initial ("A. Lovelace"), the splitter panics at it."""


SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])(?![。！？”’」』）])\s*")
"""The end of a sentence in Markdown; Chinese and Japanese ones are followed by no blank. sentencex is for plain text:
it cut 39 of 1,732 lines of reports differently, most of them within emphasis or a path ("**Quality.", "`." of
"`./hello.py`")."""


class Sentence(NamedTuple):
    """A sentence, an item of a list or a row of a table."""

    text: str
    place: int
    """Position among the output's sentences, from 0."""
    is_prose: bool
    """True if a narrative can use it; a row of a table cannot."""


def heading_of(output: str) -> str:
    """Returns the output's first heading; "" if it has none."""
    found = (HEADING.match(line[:_LONGEST]) for line in without_code(_lines(output)))
    texts = (plain(match[2].rstrip().rstrip("#")) for match in found if match)
    return next((text for text in texts if text), "")


def first_words(output: str) -> str:
    """Returns the first block of the output, or its first heading."""
    return next((text for text, _ in _blocks(output)), "") or heading_of(output)


def sentences(output: str) -> list[Sentence]:
    """Lists the output's distinct sentences, without headings and code; if it is all code, the lines of that."""
    found: dict[str, bool] = {}
    for block, is_prose in _blocks(output):
        for sentence in sentences_of(block) if is_prose else [block]:
            found.setdefault(sentence, is_prose)
    return [Sentence(text=text, place=place, is_prose=is_prose) for place, (text, is_prose) in enumerate(found.items())]


def sentences_of(text: str) -> list[str]:
    """Splits plain text into sentences."""
    return [stripped for part in sentencex.segment("en", _WIDE_BLANK.sub(" ", text)) if (stripped := part.strip())]


def _blocks(output: str) -> Iterator[tuple[str, bool]]:
    """Yields paragraphs, items, rows and JSON leaves in order, each with True if it is prose.

    The first reading that finds any counts: as JSON, as Markdown without code, as Markdown with it.
    """
    lines = _lines(output)
    shown = without_code(lines)
    for found in (_json_blocks(shown), _markdown_blocks(shown), _markdown_blocks(lines)):
        first = next(found, None)
        if first is not None:
            yield first
            yield from found
            return


def _markdown_blocks(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    paragraph: list[str] = []
    header: list[str] = []
    for line in itertools.chain((line for line in lines if not FENCE.match(line)), [""]):
        bare = _QUOTE.sub("", line[:_LONGEST])
        starts_item = ITEM.match(bare) is not None
        is_row = bare.strip().startswith("|")
        is_empty = not bare.strip() or HEADING.match(bare) is not None or _RULE.match(bare) is not None
        if paragraph and (starts_item or is_row or is_empty):
            yield from _block(plain(" ".join(paragraph)), is_prose=True)
            paragraph = []
        if not is_row:
            header = []
        if is_row and not is_empty:
            cells = [plain(cell) for cell in bare.strip().strip("|").split("|")]
            if header:
                yield from _block(_row(header, cells), is_prose=False)
            header = header or cells
        elif not is_empty:
            paragraph.append(ITEM.sub("", bare) if starts_item else bare)


def _block(text: str, *, is_prose: bool) -> Iterator[tuple[str, bool]]:
    if text:
        yield text, is_prose


def _json_blocks(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields each leaf with its key, and each flat object of a list as a row, if the whole output is JSON."""
    text = "\n".join(lines).strip()
    if not text.startswith(("{", "[")):
        return
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return
    for key, value in _leaves(loaded):
        if isinstance(value, dict):
            yield from _block(_row(list(value), [_scalar(item) for item in value.values()]), is_prose=False)
        elif isinstance(value, str) and "\n" in value:
            yield from _markdown_blocks(without_code(_lines(value)))
        else:
            yield from _block(_row([key], [_scalar(value)]), is_prose=isinstance(value, str))


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - any JSON value
    """Yields scalars and flat objects of lists with their keys, without recursion, so that any depth is read."""
    pending = [("", value, False)]
    while pending:
        key, item, is_row = pending.pop()
        if isinstance(item, dict) and not is_row:
            pending.extend((name, part, False) for name, part in reversed(item.items()))
        elif isinstance(item, list):
            pending.extend((key, part, _is_flat(part)) for part in reversed(item))
        else:
            yield key, item


def _is_flat(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(value, dict) and not any(isinstance(part, dict | list) for part in value.values())


def _scalar(value: Any) -> str:  # noqa: ANN401 - any JSON scalar
    if value is None:
        return ""
    return plain(value[:_LONGEST]) if isinstance(value, str) else json.dumps(value)


def _row(header: Sequence[str], cells: Sequence[str]) -> str:
    """Joins each cell with its column's name, so that a row can be understood alone."""
    named = itertools.zip_longest(header, cells, fillvalue="")
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)


def _lines(output: str) -> list[str]:
    return FRONT_MATTER.sub("", output, count=1).splitlines()


_INSERTED = (
    "system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-stdout",
    "bash-stderr", "ide_opened_file", "ide_selection", "ide_diagnostics", "user-prompt-submit-hook",
    "task-notification", "command-message", "command-contents", "environment_context", "user_instructions",
    "permissions", "turn_aborted", "INSTRUCTIONS",
)  # fmt: skip
"""Tags of what programs put into a user's message: nobody said it."""
_COMMANDS = re.compile(
    r"<(command-name|command-args|bash-input)>(?:(?!<(?:command-name|command-args|bash-input)>).){0,5000}?</\1>",
    re.DOTALL,
)
"""Commands that a user typed for the program, not for the agent."""
_NOTICE = re.compile(
    r"^(?:\[Request (?:was )?(?:interrupted|cancelled)[^\]\n]*\]?|Caveat: The messages below.*)", re.MULTILINE
)
"""A program's notice: an interruption, or a caveat on the messages that follow."""
_CONTINUED = re.compile(r"\s*This session is being continued from a previous conversation")
"""The beginning of a summary that a program wrote to continue a session."""
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^\s*>(?!\s*$)")
"""A line that quotes an earlier message or a document."""
_CITED = re.compile(r"[\"“„«]([^\"“”„«»\n]{30,2000})[\"”“»]")
_FEWEST_CITED = 7
"""Words in quotation marks from which on they are somebody else's."""
_SPOKEN_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S|^\*\*[^*\n]{1,60}\*\*:?\s*$|^[A-Z][A-Z &/]{3,40}:\s*$")
"""A heading: a person who talks writes none, so that a document follows. “IMPORTANT: never …” is talk."""
_SIGNED_RUN = re.compile(
    r"(?:^[ \t]*[\u2600-\u27bf\U0001f300-\U0001faff][^\w\n]*\w.*(?:\n|\Z)(?:[ \t]*\n)*){2,}", re.MULTILINE
)
"""Lines that begin with a picture, as a program lists what it did. One alone is a person's."""
_PASTED = re.compile(
    r"^\s*(?:[❯$%»→✓✗✔×●]|\"{3}|\w+@[\w.-]+[:~]|at\s+\S+\s*\(|File \"|"
    r"Traceback|(?:\w+\.)*\w*(?:Error|Exception)\b\s*[:(]|\d+\s*\||[-+*#|]{3,}|npm |error(?:\[\w+\])?:|warning:|"
    r"(?-i:note:)|help:|= note|-->|\[\d|\{|\}|<\/?\w+|\||\^+|\d{2,4}[-/]\d\d[-/]\d\d[T ,]|\[?\d\d:\d\d:\d\d|"
    r"\S+\.\w+:\d+(?::\d+)?:?\s|\S+:\d+:\d+|select\s(?=.*[;=(*]).*\sfrom\s|insert into\s|create table\s|"
    r"update\s+[\w.]+\s+set\s|delete from\s+[\w.]+\s*(?:where\b|;)|(?:from|where)\s+[\w.]+\s*(?:[=<>;]|in\s*\(|"
    r"is\s(?:not\s)?null|like\s')|(?-i:SELECT|FROM|WHERE|UPDATE)\s.*[;=(])",
    re.IGNORECASE,
)
"""A line of a terminal, a log, a stack, a table, a query or a data file."""
_MESSAGE = re.compile(
    r"(?:Uncaught\s+)?(?:\b\w*(?:Error|Exception|ERR!)\s*[:\]]|\[eslint\]|\bERROR in\b|\bnpm (?:warn|error)\b).*"
)
"""A program's message, up to the end of its line."""
_SYNTAX = re.compile(r"[{}\[\]<>=;|\\/_$]")
_MOST_SYNTAX = 0.12
"""Share of such characters in a line from which on it is no speech."""
_SHORT = 25
"""Characters of a line that is always taken for speech if it is not _PASTED: `make it bun` is no code."""
_STOP = re.compile(r";\s+|(?<!\s)\s+[-–—]\s+")
"""A break between statements of one sentence. A run of blanks is tried from its beginning only: else its time would
grow with the square of its length."""
_WORD = re.compile(r"\w")


class Speech(NamedTuple):
    """A turn's own words, and how much else stands in it."""

    text: str
    pasted: float
    """Share of the turn's characters that were pasted or inserted, 0 to 1."""


def speech_of(turn: str) -> Speech:
    """Separates a turn's own words from what a program inserted, and from quotes, logs, documents and code."""
    kept, in_document = list[str](), False
    own = _COMMENT.sub("\n", _FENCE.sub("\n", without_inserted(turn)))
    for line in _SIGNED_RUN.sub("\n", own).split("\n"):
        # A document ends where a paragraph begins in lower case: a person goes on.
        in_document = _SPOKEN_HEADING.match(line) is not None or (in_document and not line[:1].islower())
        if not in_document and not _QUOTED.match(line) and not _is_pasted(line):
            kept.append(_MESSAGE.sub("", line))
    text = _CITED.sub(_without_citations, "\n".join(kept)).strip()
    length = len(turn.strip())
    return Speech(text=text, pasted=1 - len(text) / length if length else 0.0)


def _without_citations(match: re.Match[str]) -> str:
    return "…" if len(match[1].split()) >= _FEWEST_CITED else match[0]


def without_inserted(text: str) -> str:
    """Returns a turn without what a program put into it: reminders, notices, commands and summaries."""
    return "" if _CONTINUED.match(text) else _NOTICE.sub("", _COMMANDS.sub("", without_tags(text)))


def without_tags(text: str) -> str:
    """Returns a text without the elements that _INSERTED names; one that is not closed stays."""
    for tag in _INSERTED if "</" in text else ():
        text = without_spans(text, f"<{tag}>", f"</{tag}>")
    return text


def without_spans(text: str, begin: str, end: str) -> str:
    """Returns a text without its parts from each `begin` to the next `end`, both included."""
    kept, place = list[str](), 0
    while (start := text.find(begin, place)) >= 0 and (stop := text.find(end, start + len(begin))) >= 0:
        kept.append(text[place:start])
        place = stop + len(end)
    return "".join([*kept, text[place:]])


def _is_pasted(line: str) -> bool:
    if _PASTED.match(line):
        return True
    return len(line) > _SHORT and len(_SYNTAX.findall(line)) / len(line) > _MOST_SYNTAX


def sentences_in(text: str) -> list[str]:
    """Splits a text into its sentences and lines, each verbatim, without list marks."""
    lines = (ITEM.sub("", line) for line in text.split("\n"))
    parts = (ITEM.sub("", part).strip() for line in lines for part in SENTENCE_END.split(line))
    return [part for part in parts if part]


def statements_in(text: str) -> list[str]:
    """Splits a text into its sentences and their statements, each verbatim; those without a word are left out."""
    parts = (part.strip() for sentence in sentences_in(text) for part in _STOP.split(sentence))
    return [part for part in parts if _WORD.search(part)]
