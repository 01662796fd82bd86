"""Masks secrets in text: keys, tokens, private keys, passwords.

They are told by detect-secrets' expressions, by more of our own, and by the key, the label or the heading of a
table that they stand under.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar, cast

import re2  # type: ignore[import-untyped] # the package has no types
import structlog
from msgspec import Struct, structs

from app.foundation.safety.rules import PACKAGE, linear
from app.foundation.text.data import read_toml
from app.foundation.values import frozen

MASKED = "[secret masked: "
_MASK = f"{MASKED}{{kind}}]"
_SHORTEST_TOKEN, _SHORTEST_NUMBER = 8, 1000
"""Characters of a token, and the least number that can be a password."""
_LONGEST_PLACEHOLDER = 200
"""Characters."""
_SECRET_KEY = re.compile(
    r"(?:.*_)?(?:password|passwd|pwd|passphrase|passcode|secret|credential|(?:api|access|secret|private|auth|account|"
    r"signing|encryption|master|client|shared)_?key|(?:access|auth|refresh|id|session|bearer|api|bot|user|csrf|security)"
    r"_?token|authorization|(?:set_)?cookie|парол[ьи]|passwort|kennwort|mot_?de_?passe|contrase(?:n|ñ)a|密码|口令)s?"
)
"""A key, in snake case, whose value is a secret."""
_PLURAL = ("s", "пароли")
"""The ends of keys of several secrets: `secrets`, `api_keys`."""
_TOKEN_KEY = re.compile(
    r"(?!(?:.*_)?(?:page|next|max|min|num|stop|eos|bos|pad|unk|special|mask)_?token)(?:.*_)?(?:token|pass|hash_key)"
)
"""A key whose value is a secret if it looks like one."""
_COMPOUND = re.compile(r"[a-z]{2,}(?:[-_.][a-z0-9]+)+")
"""A name; under the key `secret` it tells where the secret is: `grafana-tls-2024`."""
_SLUG = re.compile(rf"{_COMPOUND.pattern}|[a-z]+|v?[0-9.]{{1,6}}")
"""A name or a number: no token."""
_COUNT = re.compile(r"[+-]?[0-9][0-9.,_ ]*")
"""The value of a key that ends in `tokens` and counts them: `session_tokens`."""
_FIELD = "secret in a field"
"""Kind of a secret that its key tells."""
_PLACEHOLDER = re.compile(
    r"""\W*|<[^<>]*>|\$\{.*\}|(?-i:\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+(?:[.(][\w.()]*)?))|\$\([^()]*\)
    |\{\{.*\}\}|\{\w+\}|%\w+%|\W*(?:x{3,}|\*{3,}|•{3,}|-{3,})\W*
    |\W*(?:(?:sk|pk|rk|ghp|gho|hf|npm|xox[abp]|glpat|key|token|aws|ey)[-_])?(?:proj-|ant-|live-|test-)?(?:\.{2,}|…|[xX]{3,}|\*{2,}).*
    |(?:your|my|the|some|this|an?|insert|enter|put|replace|change|example|sample|dummy|fake|placeholder|redacted|masked
    |hidden|removed|omitted|censored|set|use|see)(?:[-_ ]\D*\d?|me|here)?
    |none|null|nil|true|false|yes|no|n/?a|unset|undefined|empty|required|optional|todo|tbd|str(?:ing)?|text|unknown|changed
    |\[secret[ ]masked:.*|(?:vault|env|file|ssm|arn|secret|sops|op)[:.].*
    |(?:os\.environ|process\.env|secrets?\.|settings\.|config\.|var\.).*""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""A value that stands for a secret and is none."""
_LABELS, _VALUES = ("name", "key", "variable", "field", "header", "label"), ("value", "val", "default", "content")
"""Keys of an object that names a setting, and those of its value: `{"name": "DB_PASSWORD", "value": …}`."""
_INHERITED = frozenset({*_VALUES, "current", "old", "new", "plain", "text", "data"})
"""Keys whose value is a secret if their object stands under the key of one."""
_SOME_COLUMN = re.compile(
    r"^[ \t]*\|[^\n]*(?:password|passwd|passphrase|api[ _-]?key|secret|token|парол|passwort|kennwort|mot de passe"
    r"|contraseña|密码)",
    re.IGNORECASE | re.MULTILINE,
)
_COLUMN_RULE = re.compile(r"[ \t|:-]+")


def _is_placeholder(value: str) -> bool:
    """Tells if a value only stands for a secret: `sk-...`, `<token>`, `${PASSWORD}`, `your-key-here`, a mask."""
    return len(value) <= _LONGEST_PLACEHOLDER and _PLACEHOLDER.fullmatch(value.strip()) is not None


def _kind_under(key: str, value: str) -> str | None:
    """Returns the kind of secret that a value is, by its key; None if it is none."""
    names = _named_by(key)
    if names is None or _is_placeholder(value) or (key.lower().endswith("tokens") and _COUNT.fullmatch(value)):
        return None
    if names is _SECRET_KEY:
        return None if key.lower().endswith("secret") and _COMPOUND.fullmatch(value) else _FIELD
    looks = len(value) >= _SHORTEST_TOKEN and not _SLUG.fullmatch(value) and not re.search(r"\s", value)
    return _FIELD if looks else None


def _is_secret_number(key: str, value: int) -> bool:
    """Tells if a number is a secret by its key, such as a password of digits; under a plural it is a count."""
    is_count = abs(value) < _SHORTEST_NUMBER or key.lower().endswith(_PLURAL)
    return not is_count and _named_by(key) is _SECRET_KEY and _kind_under(key, str(value)) is not None


@functools.lru_cache(maxsize=4096)
def _named_by(key: str) -> re.Pattern[str] | None:
    """Returns the expression of the keys of secrets that a key matches in snake case."""
    name = re.sub(r"[^\w]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)).lower().strip("_")
    return next((pattern for pattern in (_SECRET_KEY, _TOKEN_KEY) if pattern.fullmatch(name)), None)


def _has_columns(text: str) -> bool:
    """Tells if a table's heading may name a secret."""
    return "|" in text and _SOME_COLUMN.search(text) is not None


def _without_columns(text: str, kinds: list[str]) -> str:
    """Masks the cells below a table's heading that names a secret."""
    if not _has_columns(text):
        return text
    lines = text.split("\n")
    heading: list[str] = []
    for place, line in enumerate(lines):
        if "|" not in line:
            heading = []
        elif place + 1 < len(lines) and "-" in lines[place + 1] and _COLUMN_RULE.fullmatch(lines[place + 1]):
            heading = line.split("|")
        elif heading and not _COLUMN_RULE.fullmatch(line):
            lines[place] = "|".join(
                _cell(*pair, kinds) for pair in itertools.zip_longest(heading, line.split("|")) if pair[1] is not None
            )
    return "\n".join(lines)


def _cell(heading: str | None, cell: str, kinds: list[str]) -> str:
    kind = _kind_under(re.sub(r"[*_`]", "", heading or "").strip(), cell.strip(" \t`\"'"))
    if kind is None:
        return cell
    kinds.append(kind)
    return f" {_MASK.format(kind=kind)} "


def _key_of(name: str, holder: Mapping[Any, Any], above: str) -> str:
    """Returns the key that tells what the value of `name` is: its own, its label, or the one above."""
    if name.lower() in _VALUES:
        label = next((holder[key] for key in _LABELS if isinstance(holder.get(key), str)), "")
        return label or above
    return above if name.lower() in _INHERITED and above else name


_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
    r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----)?"
)
_UNUSED_DETECTORS = frozenset(
    {"IPPublicDetector", "BasicAuthDetector", "PrivateKeyDetector", "KeywordDetector", "JwtTokenDetector"}
)
"""Detectors of the library that are not used: an IP address is no secret, passwords in addresses and private keys are
masked whole here, and words such as `secret:` occur in harmless prose."""
PIECE_CHARACTERS = 16_384
"""Characters that an expression with lookahead reads at once. It holds the interpreter meanwhile: 1 ms for so much of a
report, 0.1 s at worst."""

_FILTER_BYTES = 32 * 2**20
"""Memory that the filters of all expressions may use. A text full of tokens fills it and takes 1 s a megabyte, while
prose takes 2 ms. With 8 MB such a text takes about 20 times as long."""
_LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")
_BOUND = re.compile(r"\{(\d+),\d+\}")
_PART = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\(\?<?[=!]|\{\d+,\d+\}|.", re.DOTALL)
_BLANKS = r"\s\pZ\x0b\x1c-\x1f\x85"
"""The blanks that `re` knows, as RE2 writes them."""


T = TypeVar("T")

logger = structlog.get_logger()


class Masked(NamedTuple):
    """A text without its secrets, and the kinds of secrets that it had."""

    text: str
    kinds: tuple[str, ...] = ()


def mask(text: str) -> Masked:
    """Replaces each secret by its kind. Pure, and linear in the text's length."""
    kinds: list[str] = []
    for expression in _likely_expressions(text):
        text = expression.mask_matches(text, kinds)
    text = _without_columns(text, kinds)
    return Masked(text=text, kinds=tuple(dict.fromkeys(kinds)))


@frozen
class _Expression:
    kind: str
    pattern: Any
    """An expression of `re` or of RE2."""
    group: int = 0
    """The group that is the secret; 0 for the whole match."""
    in_pieces: bool = False
    """True if a long text is read piece by piece."""

    def mask_matches(self, text: str, kinds: list[str]) -> str:
        """Masks each match, and adds the kind to `kinds` for each."""

        def mask_match(match: Any) -> str:  # noqa: ANN401 - of either engine
            start, end = match.span(self.group)
            whole = match.string
            if self.in_pieces and _is_placeholder(whole[start:end]):
                return str(match[0])
            kinds.append(self.kind)
            return f"{whole[match.start() : start]}{_MASK.format(kind=self.kind)}{whole[end : match.end()]}"

        pieces = _pieces(text) if self.in_pieces else (text,)
        return "".join(self.pattern.sub(mask_match, piece) for piece in pieces)


def load() -> None:
    """Prepares the expressions, which takes a third of a second, before the first request needs them."""
    _expressions()


def _likely_expressions(text: str) -> Iterator[_Expression]:
    """Yields the expressions that may match. One pass filters all of them; most texts pass none."""
    expressions, filters = _expressions()
    return (expressions[place] for place in sorted(filters.Match(_with_latin_i(text)) or ()))


def _with_latin_i(text: str) -> str:
    """Replaces the Turkish letters that `re` takes for an i when it ignores case."""
    return text if text.isascii() else text.replace("ı", "i").replace("İ", "I")


@functools.cache
def _expressions() -> tuple[tuple[_Expression, ...], Any]:
    """Returns every expression in the order of use, and the filters of all under the same numbers."""
    own, library = list(_own_patterns()), list(_library_patterns())
    options = re2.Options()
    options.max_mem = _FILTER_BYTES
    filters = re2.Set.SearchSet(options)
    for pattern in (_PRIVATE_KEY, *(pattern for _, pattern in (*own, *library))):
        filters.Add(_filter(pattern))
    filters.Compile()
    return (
        _Expression(kind="private key", pattern=_PRIVATE_KEY),
        *(_Expression(kind=kind, pattern=made, group=made.groups, in_pieces=True) for kind, made in own),
        *(_Expression(kind=kind, pattern=_linear(pattern)) for kind, pattern in library),
    ), filters


def _own_patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    found = read_toml(PACKAGE, "secrets.toml", dict[str, list[dict[str, str]]])
    return ((secret["kind"], re.compile("".join(secret["pattern"].splitlines()))) for secret in found["secret"])


def _library_patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    from detect_secrets.core.plugins import util  # noqa: PLC0415 - takes a quarter of a second to import

    detector: Any
    for kind, detector in sorted(util.get_mapping_from_secret_type_to_class().items()):
        if hasattr(detector, "denylist") and detector.__name__ not in _UNUSED_DETECTORS:
            yield from ((kind, pattern) for pattern in detector().denylist)


def _pieces(text: str) -> Iterator[str]:
    """Cuts a text into pieces of PIECE_CHARACTERS: at a paragraph, line, blank or comma if there is one."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        stop = start + PIECE_CHARACTERS
        cuts = (text.rfind(mark, start, stop) + 1 for mark in ("\n\n", "\n", " ", ","))
        end = next((cut for cut in cuts if cut > start), stop)
        yield text[start:end]
        start = end
    yield text[start:]


def masked_values(value: T) -> T:
    """Masks each text in a value: itself, each element and key of JSON, each field of a frozen dataclass or struct.

    The value of a key that names a secret is masked whole. Returns the value itself if nothing in it can be a secret;
    otherwise mappings become dicts with text keys. The log names only the kinds of the secrets.
    """
    texts: list[str] = []
    kinds: list[str] = []

    def collect(text: str, key: str) -> str:
        texts.append(text)
        kinds.extend(kind for kind in [_kind_under(key, text) if key else None] if kind)
        return text

    def change(text: str, key: str) -> str:
        kind = _kind_under(key, text) if key else None
        found = Masked(text=_MASK.format(kind=kind), kinds=(kind,)) if kind else mask(text)
        kinds.extend(found.kinds)
        return found.text

    _map_texts(value, collect)
    joined = "\n".join(texts)
    if not kinds and not any(_likely_expressions(joined)) and not _has_columns(joined):
        return value
    kinds.clear()
    result = _map_texts(value, change)
    if kinds:
        logger.warning("a secret was masked before it was stored", kinds=list(dict.fromkeys(kinds)))
    return cast("T", result)


def _map_texts(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:  # noqa: ANN401 - any JSON value, or a frozen one with fields
    """Copies a value with each text changed; `key` is the one that it stands under."""
    match value:
        case str():
            return change(value, key)
        case int() if key and not isinstance(value, bool) and _is_secret_number(key, value):
            return change(str(value), key)
        case Mapping():
            return {
                change(str(name), ""): _map_texts(item, change, _key_of(str(name), value, key))
                for name, item in value.items()
            }
        case list() | tuple():
            items = [_map_texts(item, change, key) for item in value]
            return items if isinstance(value, list) else tuple(items)
    make: Callable[..., Any] = replace
    if isinstance(value, Struct):
        names, make = value.__struct_fields__, structs.replace
    elif is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in fields(value))
    else:
        return value
    return make(value, **{name: _map_texts(getattr(value, name), change) for name in names})


def _filter(pattern: re.Pattern[str]) -> str:
    """Rewrites an expression for RE2, so that it matches wherever the original does, and in few other places.

    It has no lookaround, repeats without an upper bound, and knows all the blanks that `re` knows.
    """
    source = "".join(_loosen(part) for part in _without_lookarounds(pattern.pattern))
    return f"(?i:{source})" if pattern.flags & re.IGNORECASE else source


def _without_lookarounds(source: str) -> Iterator[str]:
    """Yields the smallest parts of an expression: classes, escapes, characters."""
    depth, looking = 0, 0
    for part in _PART.findall(source):
        depth += part.startswith("(")
        if not looking and part in _LOOKAROUNDS:
            looking = depth
        if not looking:
            yield part
        if part == ")":
            looking = 0 if looking == depth else looking
            depth -= 1


def _loosen(part: str) -> str:
    if part == r"\s":
        return f"[{_BLANKS}]"
    if part.startswith("["):
        return part.replace(r"\s", _BLANKS)
    return _BOUND.sub(r"{\1,}", part)


def _linear(pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - re2 has no types
    """Compiles an expression for RE2; leaves one with lookahead to `re`, because it bounds its repeats itself."""
    # The only lookbehind of the library: the start of a word.
    source = pattern.pattern.replace(r"(?:(?<=\W)|(?<=^))", r"\b")
    try:
        return linear(f"(?i:{source})" if pattern.flags & re.IGNORECASE else source)
    except re2.error:
        return pattern
