"""Text search languages: what Postgres knows, and what people call it."""

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

UNKNOWN = "simple"
"""No stemming and no stop words: right for any language, if not best."""


def configuration(language: str) -> str:
    """The text search configuration for a name or an ISO 639-1 code (`Russian`, `ru`, `ru-RU`); `simple` if none."""
    name = language.strip().lower()
    if name in CONFIGURATIONS:
        return name
    return CODES.get(name.replace("_", "-").split("-")[0], UNKNOWN)
