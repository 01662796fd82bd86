"""Secrets in text: keys, tokens, private keys, passwords in addresses. Found by detect-secrets' own expressions."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import structlog

MASK = "[secret masked: {kind}]"
PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
    r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----)?"
)
MORE = {
    "API key": re.compile(
        r"\b(?:sk|pk|rk)-(?=[A-Za-z_-]{0,200}[0-9])(?=[A-Za-z0-9_-]{0,100}?[A-Za-z0-9]{16})"
        r"(?:[a-z0-9]{2,12}-){0,3}[A-Za-z0-9_-]{20,200}\b"
    ),
    "Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{24,80}\b"),
    "Google API key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "JSON web token": re.compile(
        r"\beyJ[A-Za-z0-9_=-]{8,4096}\.[A-Za-z0-9_=-]{4,8192}(?:\.[A-Za-z0-9_.+/=-]{0,4096})?"
    ),
    "access token": re.compile(
        r"\b(?:npm_[A-Za-z0-9]{30,80}|glsa_[A-Za-z0-9]{20,80}(?:_[0-9a-fA-F]{8})?|do[opr]_v1_[0-9a-f]{32,128}"
        r"|GOCSPX-[A-Za-z0-9_-]{20,80}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dapi[0-9a-f]{32}|gsk_[A-Za-z0-9]{32,80}"
        r"|nvapi-[A-Za-z0-9_-]{40,100}|xai-[A-Za-z0-9]{40,120}|ya29\.[A-Za-z0-9_-]{20,1000})\b"
    ),
    "GitHub token": re.compile(r"\bgithub_pat_[0-9A-Za-z_]{22,255}\b"),
    "bearer token": re.compile(
        r"(?i)\bauthorization:\s{0,3}(?:bearer|basic|token)\s{1,3}([A-Za-z0-9._~+/=-]{12,4096})"
    ),
    "password": re.compile(r"(?i)\b(?:password|passwd|pwd)\b[\"']?\s{0,3}[:=]\s{0,3}[\"']([^\s\"']{6,200})[\"']"),
    "password in an address": re.compile(
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@]{0,200}:([^\s/]{1,200})@(?=[^\s/@])"
    ),
    "secret in an address": re.compile(
        r"(?i)[?&;](?:(?:access|auth|id|refresh|session|api|client|private)[_-]?)?"
        r"(?:token|apikey|api[_-]?key|(?<=[a-z_-])key|secret|password|passwd|signature|sig)=([^\s&;\"'<>#()\[\]{}]{8,2048})"
    ),
    "secret in a setting": re.compile(
        r"\b(?:[A-Z0-9_]{0,60}(?:PASSWORD|PASSWD|PASSPHRASE)|(?:[A-Z0-9]{1,40}_){0,8}(?:PWD|SECRET|TOKEN"
        r"|(?:API|ACCESS|SECRET|PRIVATE|AUTH|SIGNING|ENCRYPTION|MASTER)_?KEY))\s?=\s?[\"']?"
        r"(?![0-9]{1,9}\b|(?:true|false|none|null)\b|[$<{\[(/~.*]|[\w.]{1,100}\()([^\s\"'`,;)]{6,1000})"
    ),
    "secret in a field": re.compile(
        r"(?i)(?:passphrase|secret|(?<!page[_-])(?<!next[_-])token"
        r"|(?:api|access|secret|private|auth|account|signing|encryption|master|client)[ _-]?key)[\\\"']{0,2}\s{0,3}"
        r"(?:=>?\s{0,3}[\\\"'`]{0,2}|:\s{0,3}[\\\"'`]{1,2}|:\s{0,3}(?=[^\s\"'`,;()]{12}))"
        r"(?![$<{\[(/~.*%]|[\w.]{1,100}[(\[]|(?:[a-z]{2,40}[0-9]{0,2}|v?[0-9]{1,4})"
        r"(?:[-_.](?:[a-z]{2,40}[0-9]{0,2}|v?[0-9]{1,4})){1,12}(?![\w-]))"
        r"(?=[^\s\\\"'`,;()<>\[\]{}]{0,80}[0-9])(?=[^\s\\\"'`,;()<>\[\]{}]{0,80}[a-z])"
        r"([^\s\\\"'`,;()<>\[\]{}]{8,1000})"
    ),
    "password of a command": re.compile(
        r"\bcurl\s[^\n;|&]{0,200}?(?<=\s)(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"'$<{]{1,100}:(?![$<{])([^\s\"']{1,200})"
    ),
    "password in a setting": re.compile(
        r"\b(?:[a-z][a-z0-9_.-]{0,60}[_.-])?(?:[Pp]assword|passwd|pwd|[Pp]assphrase)(?:=|:\s?)(?![$<{\[])"
        r"(?=[^\s\"'`,;()]{0,60}[0-9])(?=[^\s\"'`,;()]{0,60}[A-Za-z])([^\s\"'`,;()]{8,200})"
    ),
}
"""Kinds that the library does not know, or knows by an older form; a group is the part that is secret."""
LEFT_OUT = frozenset(
    {"IPPublicDetector", "BasicAuthDetector", "PrivateKeyDetector", "KeywordDetector", "JwtTokenDetector"}
)
"""Of the library's: an address is no secret, passwords in addresses and private keys are masked whole here, and words
such as `secret:` stand in innocent prose."""
PIECE_CHARACTERS = 16_384
"""Expressions that look ahead hold the interpreter while they read: 1 ms for as much of a report, 0.1 s at worst."""

FILTER_BYTES = 32 * 2**20
"""What the filters of all expressions may remember, and keep once a text full of tokens has filled it: such a text
takes 1 s a megabyte instead of the 2 ms of prose, and some 20 times as long with 8 MB."""
LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
BOUND = re.compile(r"\{(\d+),\d+\}")
PART = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\(\?<?[=!]|\{\d+,\d+\}|.", re.DOTALL)
BLANKS = r"\s\pZ\x0b\x1c-\x1f\x85"
"""What `re` takes for a blank, as the linear engine names it."""

T = TypeVar("T")

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A text without its secrets, and which kinds there were."""

    text: str
    kinds: tuple[str, ...] = ()


def mask(text: str) -> Masked:
    """`text` with each secret replaced by what kind of secret stood there. Pure, and linear in the text's length."""
    kinds: list[str] = []
    for expression in _suspected(text):
        text = expression.masked(text, kinds)
    return Masked(text=text, kinds=tuple(dict.fromkeys(kinds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expression:
    kind: str
    pattern: Any
    """Of either engine."""
    in_part: bool = False
    """Whether its group is the secret; else the whole match is."""
    in_pieces: bool = False

    def masked(self, text: str, kinds: list[str]) -> str:
        """The text without what this finds; `kinds` has one more for each."""

        def replaced(match: Any) -> str:  # noqa: ANN401 - of either engine
            kinds.append(self.kind)
            start, end = match.span(1) if self.in_part else match.span()
            whole = match.string
            return f"{whole[match.start() : start]}{MASK.format(kind=self.kind)}{whole[end : match.end()]}"

        pieces = _pieces(text) if self.in_pieces else (text,)
        return "".join(self.pattern.sub(replaced, piece) for piece in pieces)


def load() -> None:
    """Make the expressions ready before somebody waits for them: that takes a third of a second."""
    _expressions()


def _suspected(text: str) -> Iterator[_Expression]:
    """The expressions that may find something: one pass tells that of all, and most text has nothing for any."""
    expressions, filters = _expressions()
    return (expressions[place] for place in sorted(filters.Match(_dotted(text)) or ()))


def _dotted(text: str) -> str:
    """With an i for each of its Turkish kin, which `re` takes for one where letters may be small or large."""
    return text if text.isascii() else text.replace("ı", "i").replace("İ", "I")


@functools.cache
def _expressions() -> tuple[tuple[_Expression, ...], Any]:
    """Every expression in the order in which they are tried, and the filters of all, by the same places."""
    import re2  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where text is stored

    sources = [("private key", PRIVATE_KEY), *MORE.items(), *_of_the_library()]
    options = re2.Options()
    options.max_mem = FILTER_BYTES
    filters = re2.Set.SearchSet(options)
    for _, pattern in sources:
        filters.Add(_filter(pattern))
    filters.Compile()
    return tuple(_expression(kind, pattern) for kind, pattern in sources), filters


def _expression(kind: str, pattern: re.Pattern[str]) -> _Expression:
    """The library's groups tell parts apart, not what is secret."""
    is_ours = kind in MORE and MORE[kind] is pattern
    engine = pattern if is_ours or pattern is PRIVATE_KEY else _linear(pattern)
    return _Expression(kind=kind, pattern=engine, in_part=is_ours and pattern.groups == 1, in_pieces=is_ours)


def _of_the_library() -> Iterator[tuple[str, re.Pattern[str]]]:
    from detect_secrets.core.plugins.util import (  # noqa: PLC0415 - takes a tenth of a second
        get_mapping_from_secret_type_to_class,
    )
    from detect_secrets.plugins.base import RegexBasedDetector  # noqa: PLC0415 - takes a tenth of a second

    detector: Any
    for kind, detector in sorted(get_mapping_from_secret_type_to_class().items()):
        if issubclass(detector, RegexBasedDetector) and detector.__name__ not in LEFT_OUT:
            yield from ((kind, pattern) for pattern in detector().denylist)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of about PIECE_CHARACTERS, cut between paragraphs or lines, at blanks or commas in a longer
    line, and anywhere in what has none of these."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        stop = start + PIECE_CHARACTERS
        cuts = (text.rfind(mark, start, stop) + 1 for mark in ("\n\n", "\n", " ", ","))
        end = next((cut for cut in cuts if cut > start), stop)
        yield text[start:end]
        start = end
    yield text[start:]


def masked(text: str) -> str:
    """`mask`'s text; what was found goes to the log by its kind alone."""
    return masked_values(text)


def masked_values(value: T) -> T:
    """A value with each text in it masked: of JSON each element and key, of a frozen dataclass each field.

    The value itself where nothing in it may be a secret; else mappings are dicts, with text for keys.
    """
    if not any(_suspected("\n".join(_texts(value)))):
        return value
    kinds: list[str] = []
    result = _masked_value(value, kinds)
    if kinds:
        logger.warning("a secret was masked before it was stored", kinds=list(dict.fromkeys(kinds)))
    return cast("T", result)


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - as below
    match value:
        case str():
            yield value
        case Mapping():
            for key, item in value.items():
                yield str(key)
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
        case _ if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                yield from _texts(getattr(value, field.name))


def _masked_value(value: Any, kinds: list[str]) -> Any:  # noqa: ANN401 - any JSON value, or a frozen dataclass
    match value:
        case str():
            found = mask(value)
            kinds += found.kinds
            return found.text
        case Mapping():
            pairs = ((_masked_value(str(key), kinds), _masked_value(item, kinds)) for key, item in value.items())
            return dict(pairs)
        case list():
            return [_masked_value(item, kinds) for item in value]
        case tuple():
            return tuple(_masked_value(item, kinds) for item in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{field.name: _masked_value(getattr(value, field.name), kinds) for field in fields(value)})


def _filter(pattern: re.Pattern[str]) -> str:
    """An expression for the linear engine that finds something wherever this one does, and little else.

    It does not look ahead or behind, repeats without an upper bound, and knows all the blanks that `re` knows.
    """
    source = "".join(_loosened(part) for part in _standing(pattern.pattern))
    return f"(?i:{source})" if pattern.flags & re.IGNORECASE else source


def _standing(source: str) -> Iterator[str]:
    """The expression's smallest parts (a class, an escape, a character) without those that look around."""
    depth, looking = 0, 0
    for part in PART.findall(source):
        depth += part.startswith("(")
        if not looking and part in LOOKS:
            looking = depth
        if not looking:
            yield part
        if part == ")":
            looking = 0 if looking == depth else looking
            depth -= 1


def _loosened(part: str) -> str:
    if part == r"\s":
        return f"[{BLANKS}]"
    if part.startswith("["):
        return part.replace(r"\s", BLANKS)
    return BOUND.sub(r"{\1,}", part)


def _linear(pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - re2 carries no types
    """The same expression for an engine whose time is linear in the text whatever the expression.

    Those that look ahead are not for it; they have bounds of their own.
    """
    import re2  # noqa: PLC0415 - only where text is stored

    # The one place where the library looks behind: at the start of a word.
    source = pattern.pattern.replace(r"(?:(?<=\W)|(?<=^))", r"\b")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?i:{source})" if pattern.flags & re.IGNORECASE else source, options)
    except re2.error:
        return pattern
