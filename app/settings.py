"""The settings: frozen, built once from the environment."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from app.errors import ConfigurationError

PREFIX = "PRIORS_"
COMPRESS_MODEL = "COMPRESS_MODEL"
"""The name, without a prefix, under which existing pipelines set the model."""
_LONGEST_DAYS = 1_000_000
"""Days for which something is kept: Postgres has no date before 4713 BC."""
_COUNTS = (
    "trash_days", "audit_days", "key_requests",
)  # fmt: skip
"""Settings that may be 0, and not less."""
_NUMERIC_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables by which numeric libraries are told their number of threads."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


ProviderKind = Literal["local", "openai", "ollama", "noop"]
_BOOLEANS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_READERS: Mapping[Any, Callable[[str], object]] = {
    bool: lambda text: _BOOLEANS[text.lower()],
    Path: lambda text: Path(text).expanduser(),
}
"""The functions that read a value's text; the constructors of other types read it themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings, one field each; the environment variable is `PRIORS_` and the field's name in capitals."""

    data_dir: Path = Path(".priors")
    """Folder of the embedded database and the model files."""
    url: str = ""
    """The service that commands ask, `http://…`; if empty, the one that runs on the data directory."""
    database_url: str = ""
    """A Postgres 16+ with pgvector, `postgresql://…`; if empty, the embedded one is used."""
    host: str = "127.0.0.1"
    """Address to serve on; other than loopback needs an API key."""
    port: int = 8000
    """Port to serve on; 0 takes a free one."""
    api_key: str = ""
    """Bearer token that every route except /health and the panel's own files requires; if empty, no route does."""
    admin_key: str = ""
    """Bearer token that releases what was quarantined; accepted like the API key; empty: only the panel releases."""
    key_requests: int = 0
    """Requests a minute of each key, in each process; 0: no limit."""
    workspace: str = "default"
    """Workspace of a call that names none."""
    language: str = "english"
    """Text search language of a new workspace."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged."""
    embedding_provider: ProviderKind = "local"
    """Provider of vectors; `openai` is any compatible endpoint, `noop` switches vectors off."""
    embedding_model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """Name of the embedding model at its provider."""
    embedding_folder: str = ""
    """Folder of a local model's files, or of a folder for each model; if empty, they are bundled or the hub's."""
    embedding_base_url: str = ""
    """Base URL of a remote provider; if empty, the provider's own default."""
    embedding_api_key: str = ""
    """Key of a remote provider."""
    embedding_dimension: int = 384
    """Numbers in a vector of the embedding model, checked when it is loaded."""
    reranker: str = ""
    """A cross-encoder that fastembed knows, which scores the best hits again; if empty, there is no re-ranking.
    Its files are those of the folder `reranker` in the data directory, else the hub's."""
    llm_base_url: str = ""
    """An OpenAI-compatible endpoint that compresses runs; if empty, runs are compressed by extraction."""
    llm_api_key: str = ""
    """Key of the endpoint for compression."""
    llm_timeout: float = 30.0
    """Longest wait for one of its answers, in seconds."""
    compress_model: str = "qwen3:8b"
    """The model there; also read from COMPRESS_MODEL."""
    evaluator: str = "wiggum"
    """The evaluator's name, before each of its issues among the facts."""
    mask_secrets: bool = True
    """True if keys, tokens and passwords are masked before anything is stored."""
    trash_days: int = 30
    """Days for which deleted memories can be restored, and after which replaced chunks and turns are destroyed."""
    audit_days: int = 365
    """Days for which entries of the audit log are kept; 0: for ever."""
    pool_size: int = 8
    """Database connections of one process."""
    max_file_bytes: int = 10_000_000
    """Largest size of a report file, in bytes."""
    explore: float = 0.0
    """Share of the recalls of runs, 0 to 1, in which a draw withholds one memory, so that effects can be measured."""
    embedded_worker: bool = True
    """True if the API process runs one background worker itself."""
    examples: bool = True
    """True if `priors run` stores the example reports and runs in an empty store."""


def child_environment() -> dict[str, str]:
    """Returns the environment of a process that only computes, apart from the service.

    It has no setting of Priors, because some are secrets, and one thread, because requests need the other cores.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return {**inherited, **dict.fromkeys(_NUMERIC_THREADS, "1")}


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
    kinds = get_type_hints(Settings)
    for name in given:
        if name not in kinds:
            raise ConfigurationError(f"{PREFIX}{name.upper()} is not a setting; docs/reference/commands.md lists them")
    return _check(Settings(**{name: _read(name, text, kinds[name]) for name, text in given.items()}))


def _read(name: str, text: str, kind: Any) -> Any:  # noqa: ANN401 - a field's type and its value
    choices = get_args(kind)
    if choices and text not in choices:
        raise ConfigurationError(f"{PREFIX}{name.upper()}={text!r} must be one of {', '.join(choices)}")
    try:
        return text if choices else _READERS.get(kind, kind)(text)
    except (KeyError, ValueError):
        raise ConfigurationError(f"{PREFIX}{name.upper()}={text!r} is not a valid {kind.__name__}") from None


def _check(settings: Settings) -> Settings:
    if not 0 <= settings.port <= 65535:  # noqa: PLR2004 - the range of TCP ports
        raise ConfigurationError(f"{PREFIX}PORT={settings.port} is not a port; take one from 0 to 65535")
    if settings.admin_key and not settings.api_key:
        raise ConfigurationError(f"{PREFIX}ADMIN_KEY needs {PREFIX}API_KEY too: without it, no client sends a key")
    if settings.pool_size < 1:
        raise ConfigurationError(f"{PREFIX}POOL_SIZE={settings.pool_size} must be at least 1")
    _check_counts(settings)
    if not 0 <= settings.explore <= 1:
        raise ConfigurationError(f"{PREFIX}EXPLORE={settings.explore} is a share; take one from 0 to 1, such as 0.1")
    return settings


def _check_counts(settings: Settings) -> None:
    for name in _COUNTS:
        if getattr(settings, name) < 0:
            raise ConfigurationError(f"{PREFIX}{name.upper()}={getattr(settings, name)} must be at least 0")
    for name in ("trash_days", "audit_days"):
        if getattr(settings, name) > _LONGEST_DAYS:
            raise ConfigurationError(
                f"{PREFIX}{name.upper()}={getattr(settings, name)} must be at most {_LONGEST_DAYS:,}"
            )


def check_exposure(settings: Settings) -> None:
    """Raises ConfigurationError if the service would accept other machines without a key."""
    if settings.host not in LOOPBACK and not settings.api_key:
        raise ConfigurationError(
            f"serving on {settings.host} needs {PREFIX}API_KEY (then required as a bearer token); or serve on 127.0.0.1"
        )


try:
    VERSION = version("priors")
except PackageNotFoundError:
    VERSION = "0+unknown"
