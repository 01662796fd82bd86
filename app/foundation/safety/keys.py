"""Tells secrets by the key, the label or the table's heading that they stand under. Pure."""

import functools
import itertools
import re
from collections.abc import Mapping
from typing import Any

MASKED = "[secret masked: "
MASK = f"{MASKED}{{kind}}]"
SHORTEST_TOKEN, SHORTEST_NUMBER = 8, 1000
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
LABELS, VALUES = ("name", "key", "variable", "field", "header", "label"), ("value", "val", "default", "content")
"""Keys of an object that names a setting, and those of its value: `{"name": "DB_PASSWORD", "value": …}`."""
_INHERITED = frozenset({*VALUES, "current", "old", "new", "plain", "text", "data"})
"""Keys whose value is a secret if their object stands under the key of one."""
_SOME_COLUMN = re.compile(
    r"^[ \t]*\|[^\n]*(?:password|passwd|passphrase|api[ _-]?key|secret|token|парол|passwort|kennwort|mot de passe"
    r"|contraseña|密码)",
    re.IGNORECASE | re.MULTILINE,
)
_COLUMN_RULE = re.compile(r"[ \t|:-]+")


def is_placeholder(value: str) -> bool:
    """Tells if a value only stands for a secret: `sk-...`, `<token>`, `${PASSWORD}`, `your-key-here`, a mask."""
    return len(value) <= _LONGEST_PLACEHOLDER and _PLACEHOLDER.fullmatch(value.strip()) is not None


def kind_under(key: str, value: str) -> str | None:
    """Returns the kind of secret that a value is, by its key; None if it is none."""
    names = _named_by(key)
    if names is None or is_placeholder(value) or (key.lower().endswith("tokens") and _COUNT.fullmatch(value)):
        return None
    if names is _SECRET_KEY:
        return None if key.lower().endswith("secret") and _COMPOUND.fullmatch(value) else _FIELD
    looks = len(value) >= SHORTEST_TOKEN and not _SLUG.fullmatch(value) and not re.search(r"\s", value)
    return _FIELD if looks else None


def is_secret_number(key: str, value: int) -> bool:
    """Tells if a number is a secret by its key, such as a password of digits; under a plural it is a count."""
    is_count = abs(value) < SHORTEST_NUMBER or key.lower().endswith(_PLURAL)
    return not is_count and _named_by(key) is _SECRET_KEY and kind_under(key, str(value)) is not None


@functools.lru_cache(maxsize=4096)
def _named_by(key: str) -> re.Pattern[str] | None:
    """Returns the expression of the keys of secrets that a key matches in snake case."""
    name = re.sub(r"[^\w]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)).lower().strip("_")
    return next((pattern for pattern in (_SECRET_KEY, _TOKEN_KEY) if pattern.fullmatch(name)), None)


def has_columns(text: str) -> bool:
    """Tells if a table's heading may name a secret."""
    return "|" in text and _SOME_COLUMN.search(text) is not None


def without_columns(text: str, kinds: list[str]) -> str:
    """Masks the cells below a table's heading that names a secret."""
    if not has_columns(text):
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
    kind = kind_under(re.sub(r"[*_`]", "", heading or "").strip(), cell.strip(" \t`\"'"))
    if kind is None:
        return cell
    kinds.append(kind)
    return f" {MASK.format(kind=kind)} "


def key_of(name: str, holder: Mapping[Any, Any], above: str) -> str:
    """Returns the key that tells what the value of `name` is: its own, its label, or the one above."""
    if name.lower() in VALUES:
        label = next((holder[key] for key in LABELS if isinstance(holder.get(key), str)), "")
        return label or above
    return above if name.lower() in _INHERITED and above else name
