"""The tenant that all verbs take, its valid names, and the languages of its texts."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from app.errors import InvalidInput
from app.foundation.db.pool import EVERYONE, OWN_ROWS, SHARED, users_of
from app.foundation.values import frozen

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "a workspace's name has 1 to 64 letters, digits, dots, dashes or underscores; a letter or digit comes first"
UNMADE = 0
"""The id of a workspace that nothing was written to yet. No row has it, so such a workspace is empty."""


@frozen
class Workspace:
    """A tenant, resolved once at the door."""

    workspace_id: int
    """UNMADE before the first write."""
    name: str
    language: str
    """Text search configuration of a memory or query that names none."""
    languages: tuple[str, ...]
    """Text search configurations of all its memories."""
    roles: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Its own roles by name, as JSON."""
    action_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """The examples of its own action types by name."""
    uses_effects: bool = field(default=False, compare=False)
    """True if the estimated effects of memories on later runs count in its ranking."""
    user: str = ""
    """The user for whom is read or written; "" for nobody."""
    sees: str = EVERYONE
    """The users whose rows are seen."""

    def of(self, user: str | None) -> "Workspace":
        """Returns the workspace as one user sees and writes it, or nobody: what others stored does not exist there.

        Raises:
            InvalidInput: nobody can have this name.
        """
        return replace(self, user=checked_user(user or ""), sees=OWN_ROWS)

    def for_reading(self, user: str | None) -> "Workspace":
        """Returns the workspace as recalls of a user see it: what belongs to the user, and what belongs to nobody.

        Raises:
            InvalidInput: nobody can have this name.
        """
        return replace(self, user=checked_user(user or ""), sees=SHARED)

    def of_everyone(self) -> "Workspace":
        """Returns the workspace with the rows of all users."""
        return replace(self, user="", sees=EVERYONE)

    @property
    def users(self) -> tuple[str, ...] | None:
        """The users whose rows are seen, "" for nobody; None for all."""
        return users_of(self.user, self.sees)


NOBODY = ""
"""The user of what belongs to no user."""
USER_LIMIT = 200
"""Most characters of a user's name."""
User: TypeAlias = Annotated[
    str,
    Meta(
        max_length=USER_LIMIT,
        description="the end user it belongs to, or who asks, by your own id of them; without it what all users share",
    ),
]


def impossible_user(name: str) -> str | None:
    """Returns the reason why no user can have this name; None if one can. "" stands for nobody."""
    if len(name) > USER_LIMIT:
        return f"has {len(name):,} characters; at most {USER_LIMIT} are taken"
    if not name.isprintable() or name.strip() != name:
        return "has a control character, or a space at its beginning or end"
    return None


def checked_user(name: str) -> str:
    """Returns `name` if a user can have it.

    Raises:
        InvalidInput: no user can have it.
    """
    if reason := impossible_user(name):
        raise InvalidInput("user", reason)
    return name


def checked_name(name: str) -> str:
    """Returns `name` if it is a valid name of a workspace.

    Raises:
        InvalidInput: the name is not valid.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput("X-Workspace", NAME_RULE)
    return name


CODES = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch",
    "en": "english", "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali",
    "no": "norwegian", "nb": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "es": "spanish", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""The text search configurations of languages, by their ISO 639-1 codes."""

_UNKNOWN = "simple"
"""The configuration for unknown languages: it has no stemming and no stop words, and works for any language."""

CONFIGURATIONS = frozenset({_UNKNOWN, *CODES.values()})
"""The text search configurations that Postgres has since version 16."""

_CODE = re.compile(r"[a-z]{2,3}([-_]|$)")
"""The beginning of an ISO 639 code, whatever region or script follows."""


def unknown_language(language: str) -> str | None:
    """Returns the reason why a language is unknown, with the known ones; None if it is known.

    Every code of two or three letters is accepted: if Postgres has no configuration for it, _UNKNOWN is used.
    """
    name = language.strip().lower()
    if not name or name in CONFIGURATIONS or _CODE.match(name):
        return None
    return f"{language!r} is none; there are ISO codes (de, pt-BR, …) and {', '.join(sorted(CONFIGURATIONS))}"


def check_language(language: str | None) -> None:
    """Raises InvalidInput if a language is named that is none."""
    if reason := unknown_language(language or ""):
        raise InvalidInput("language", reason)


def configuration(language: str) -> str:
    """Returns the text search configuration of a name or an ISO 639-1 code (`Russian`, `ru`, `ru-RU`), or `simple`."""
    name = language.strip().lower()
    if name in CONFIGURATIONS:
        return name
    return CODES.get(name.replace("_", "-").split("-")[0], _UNKNOWN)
