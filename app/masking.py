"""Secrets in text: keys, tokens, private keys, passwords in addresses. Found by detect-secrets' own expressions."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import structlog

MASK = "[secret masked: {kind}]"
LIKELY = re.compile(
    r"[A-Za-z0-9_/+=.\-]{16}|://[^\s/]*@|PRIVATE KEY|[0-9]:[A-Za-z0-9_-]{8}"
    r"|(?i:pass(?:word|wd|phrase)|pwd|secret|token|key)[\\\"']{0,2}\s{0,3}[:=]|\bcurl\s"
)
"""What every detector's finding contains; most text has none of it, and is done after one pass."""
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
REPEATED_CHARACTERS = 256
"""Texts up to that long come again and again: a file's path and headings with each of its chunks."""

T = TypeVar("T")

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A text without its secrets, and which kinds there were."""

    text: str
    kinds: tuple[str, ...] = ()


def mask(text: str) -> Masked:
    """`text` with each secret replaced by what kind of secret stood there. Pure, and linear in the text's length."""
    return _mask_again(text) if len(text) <= REPEATED_CHARACTERS else _mask(text)


@functools.lru_cache(maxsize=1024)
def _mask_again(text: str) -> Masked:
    return _mask(text)


def _mask(text: str) -> Masked:
    if not _likely().search(text):
        return Masked(text=text)
    kinds: list[str] = []

    def replaced(kind: str, match: Any) -> str:  # noqa: ANN401 - of either engine
        kinds.append(kind)
        if kind not in MORE or match.re.groups != 1:
            return MASK.format(kind=kind)
        start, end = match.span(1)
        whole = match.string
        return f"{whole[match.start() : start]}{MASK.format(kind=kind)}{whole[end : match.end()]}"

    text = PRIVATE_KEY.sub(functools.partial(replaced, "private key"), text)
    pieces = list(_pieces(text))
    for kind, pattern in MORE.items():
        pieces = [pattern.sub(functools.partial(replaced, kind), piece) for piece in pieces]
    text = "".join(pieces)
    for kind, pattern in _detectors():
        text = pattern.sub(functools.partial(replaced, kind), text)
    return Masked(text=text, kinds=tuple(dict.fromkeys(kinds)))


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
    """A value with each text in it masked: of JSON each element and key, of a frozen dataclass each field."""
    kinds: list[str] = []
    result = _masked_value(value, kinds)
    if kinds:
        logger.warning("a secret was masked before it was stored", kinds=list(dict.fromkeys(kinds)))
    return cast("T", result)


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


@functools.cache
def _likely() -> Any:  # noqa: ANN401 - re2 carries no types
    return _linear(LIKELY)


@functools.cache
def _detectors() -> tuple[tuple[str, Any], ...]:
    """The library's expressions, each with the name of its kind; they are loaded when text first looks likely."""
    from detect_secrets.core.plugins.util import (  # noqa: PLC0415 - takes a tenth of a second
        get_mapping_from_secret_type_to_class,
    )
    from detect_secrets.plugins.base import RegexBasedDetector  # noqa: PLC0415 - takes a tenth of a second

    found: list[tuple[str, Any]] = []
    detector: Any
    for kind, detector in sorted(get_mapping_from_secret_type_to_class().items()):
        if issubclass(detector, RegexBasedDetector) and detector.__name__ not in LEFT_OUT:
            # Their groups tell parts apart, not what is secret: the whole match is.
            found += [(kind, _linear(pattern)) for pattern in detector().denylist]
    return tuple(found)


def _linear(pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - re2 carries no types
    """The same expression for an engine whose time is linear in the text whatever the expression.

    Those that look ahead are not for it; they have bounds of their own.
    """
    import re2  # type: ignore[import-untyped] # noqa: PLC0415 - it carries no types; only where text looks likely

    # The one place where the library looks behind: at the start of a word.
    source = pattern.pattern.replace(r"(?:(?<=\W)|(?<=^))", r"\b")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?i:{source})" if pattern.flags & re.IGNORECASE else source, options)
    except re2.error:
        return pattern
