"""Text search languages: what Postgres knows, and what people call it."""

import re

from app.db.engine import Database
from app.errors import InvalidInput
from app.workspaces import store
from app.workspaces.workspace import checked_name

CONFIGURATIONS = frozenset({
    "simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german",
    "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese",
    "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
})  # fmt: skip
"""The text search configurations that every Postgres from 16 on carries."""

CODES = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch",
    "en": "english", "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi",
    "hu": "hungarian", "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali",
    "no": "norwegian", "nb": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "es": "spanish", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""ISO 639-1 codes of the same."""

CODE = re.compile(r"[a-z]{2,3}([-_]|$)")
"""How an ISO 639 code begins, whatever region or script follows."""

UNKNOWN = "simple"
"""No stemming and no stop words: right for any language, if not best."""


def unknown_language(language: str) -> str | None:
    """Why this is no language, with those that are known; None if it is one.

    A code of two or three letters always is: of languages that Postgres has no configuration for, UNKNOWN serves.
    """
    name = language.strip().lower()
    if not name or name in CONFIGURATIONS or CODE.match(name):
        return None
    return f"{language!r} is none; there are ISO codes (de, pt-BR, …) and {', '.join(sorted(CONFIGURATIONS))}"


def check_language(language: str | None) -> None:
    """Raise InvalidInput where a language is named that is none."""
    if reason := unknown_language(language or ""):
        raise InvalidInput("language", reason)


def configuration(language: str) -> str:
    """The text search configuration for a name or an ISO 639-1 code (`Russian`, `ru`, `ru-RU`); `simple` if none."""
    name = language.strip().lower()
    if name in CONFIGURATIONS:
        return name
    return CODES.get(name.replace("_", "-").split("-")[0], UNKNOWN)


async def set_language(database: Database, *, workspace: str, language: str) -> str:
    """Set the language of memories and queries that name none; what is stored keeps its own.

    The workspace is made if need be. The text search configuration that was set: `simple` for a code that
    Postgres has none for.

    Raises:
        InvalidInput: the workspace may not be called that, or there is no such language.
    """
    check_language(language)
    chosen = configuration(language)
    async with database.transaction() as connection:
        target = await store.ensure(connection, checked_name(workspace), chosen)
        await store.set_language(connection, target, chosen)
    return chosen
