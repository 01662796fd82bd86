"""The settings: frozen, built once from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from app.errors import ConfigurationError

PREFIX = "PRIORS_"
COMPRESS_MODEL = "COMPRESS_MODEL"
"""The name under which existing pipelines set it, without the prefix."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def _setting(default: object, meaning: str, unit: str = "") -> Any:  # noqa: ANN401 - stands where a value of each field's type does
    return field(default=default, metadata={"meaning": meaning, "unit": unit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings, one field each; the environment variable is `PRIORS_` and the field's name in capitals."""

    data_dir: Path = _setting(Path(".priors"), "where the embedded database and the model files live")
    database_url: str = _setting("", "a Postgres 16+ with pgvector, `postgresql://…`; empty: the embedded one")
    host: str = _setting("127.0.0.1", "address to serve on; other than loopback needs an API key")
    port: int = _setting(8000, "port to serve on; 0 takes a free one")
    api_key: str = _setting(
        "", "bearer token that every route but /health and the panel's own files asks for; empty: none asked"
    )
    workspace: str = _setting("default", "workspace of a call that names none")
    language: str = _setting("english", "text search language of a new workspace")
    log_format: str = _setting("auto", "`console`, `json`, or `auto`: console on a terminal, JSON elsewhere")
    log_level: str = _setting("info", "least severe level that is logged: debug, info, warning, error")
    embedding_provider: str = _setting("local", "`local`, `openai` (any compatible endpoint), `ollama` or `noop`")
    embedding_model: str = _setting(
        "sentence-transformers/all-MiniLM-L6-v2", "name of the embedding model at its provider"
    )
    embedding_base_url: str = _setting("", "base URL of a remote provider; empty: the provider's own default")
    embedding_api_key: str = _setting("", "key of a remote provider")
    embedding_dimension: int = _setting(384, "length of the vectors of a remote model", "numbers")
    embedding_threads: int = _setting(
        0, "threads that embed documents; 0: one a core, at most 8; a query always takes one", "threads"
    )
    embedding_timeout: float = _setting(10.0, "longest wait for a remote provider", "seconds")
    reranker: str = _setting(
        "", "a cross-encoder that fastembed knows, which reads the best hits once more; empty: none does"
    )
    reranker_folder: str = _setting("", "folder of its files; empty: the data directory's cache, or its hub")
    llm_base_url: str = _setting("", "an OpenAI-compatible endpoint that compresses; empty: extracts instead")
    llm_api_key: str = _setting("", "key of that endpoint")
    llm_timeout: float = _setting(30.0, "longest wait for one of its answers", "seconds")
    compress_model: str = _setting("qwen3:8b", "the model there; also read from COMPRESS_MODEL")
    evaluator: str = _setting("wiggum", "the evaluator's name, before each of its issues among the facts")
    mask_secrets: bool = _setting(True, "keys, tokens and passwords are masked before anything is stored")
    trash_days: int = _setting(30, "deleted memories can be restored for so long", "days")
    pool_size: int = _setting(8, "database connections of one process", "connections")
    max_file_bytes: int = _setting(10_000_000, "a larger report file is refused", "bytes")
    embedded_worker: bool = _setting(True, "the API process runs one background worker itself")


def from_environment(environ: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings of the `PRIORS_*` variables, each read by its field's type.

    Raises:
        ConfigurationError: a value that does not fit, or a `PRIORS_` variable that no setting has.
    """
    environment = os.environ if environ is None else environ
    given = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and not name.startswith(PREFIX + "TEST_")
    }
    if COMPRESS_MODEL in environment:
        given.setdefault("compress_model", environment[COMPRESS_MODEL])
    known = {item.name: item for item in fields(Settings)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in known:
            raise ConfigurationError(f"{PREFIX}{name.upper()} is not a setting; the README lists them")
        values[name] = _read(name, text, known[name].default)
    return _checked(Settings(**values))


def _read(name: str, text: str, default: object) -> object:
    try:
        match default:
            case bool():
                return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
            case int() | float():
                return type(default)(text)
            case Path():
                return Path(text).expanduser()
            case _:
                return text
    except (KeyError, ValueError):
        kind = type(default).__name__
        raise ConfigurationError(f"{PREFIX}{name.upper()}={text!r} is not a valid {kind}") from None


def _checked(settings: Settings) -> Settings:
    if not 0 <= settings.port <= 65535:  # noqa: PLR2004 - the range of TCP ports
        raise ConfigurationError(f"{PREFIX}PORT={settings.port} is not a port; take one from 0 to 65535")
    if settings.pool_size < 1:
        raise ConfigurationError(f"{PREFIX}POOL_SIZE={settings.pool_size} must be at least 1")
    if settings.trash_days < 0:
        raise ConfigurationError(f"{PREFIX}TRASH_DAYS={settings.trash_days} must be at least 0")
    choices = {
        "log_format": ("auto", "console", "json"),
        "log_level": ("debug", "info", "warning", "error"),
        "embedding_provider": ("local", "openai", "ollama", "noop"),
    }
    for name, allowed in choices.items():
        value = getattr(settings, name)
        if value not in allowed:
            raise ConfigurationError(f"{PREFIX}{name.upper()}={value!r} must be one of {', '.join(allowed)}")
    return settings


def check_exposure(settings: Settings) -> None:
    """Raises ConfigurationError where the service would listen beyond this machine without a key."""
    if settings.host not in LOOPBACK and not settings.api_key:
        raise ConfigurationError(
            f"serving on {settings.host} needs {PREFIX}API_KEY (then required as a bearer token); or serve on 127.0.0.1"
        )


try:
    VERSION = version("priors")
except PackageNotFoundError:
    VERSION = "0+unknown"
