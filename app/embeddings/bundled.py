"""The default model without a hub: its bundled weights, written once into the data directory."""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.embeddings.tokens import bundled_file
from app.errors import EmbeddingUnavailable

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
DIMENSION = 384
WINDOW = 256
"""Tokens the model reads, the two that frame a sequence included: the `max_seq_length` it was published with."""
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the official model.safetensors."""
GRAPH_VERSION = 1
"""Goes up with every change to what is written; the folder of an older version is left to itself."""
FOLDER = f"{DEFAULT_MODEL.replace('/', '--')}-{GRAPH_VERSION}"
MANIFEST = "manifest.json"
_COPIED = ("config.json", "tokenizer.json", "special_tokens_map.json")
_UNFINISHED = ".unfinished"
"""Where the one process that holds the lock writes; it becomes the model's folder by a rename."""


def write_onnx(folder: Path) -> Path:
    """The folder below `folder` that holds the model as ONNX with its tokenizer, written if it is not there yet.

    Takes about 1 s the first time and nothing after. Processes that start together wait for the first; what a
    killed one left is removed, and a folder that is not whole is never used.

    Raises:
        EmbeddingUnavailable: the weights are missing or not the official ones, or the folder cannot be written.
    """
    target = folder / FOLDER
    if is_whole(target):
        return target
    try:
        with _locked(folder):
            if not is_whole(target):
                _replace(target, folder / _UNFINISHED)
    except OSError as error:
        reason = error.strerror or error
        raise EmbeddingUnavailable(
            f"cannot write the embedding model to {folder}: {reason}; it needs 92 MB and the right to write there"
        ) from error
    return target


def is_whole(target: Path) -> bool:
    """Whether each file is there with the size that the manifest, written last, gives."""
    try:
        sizes = json.loads((target / MANIFEST).read_bytes())
        return bool(sizes) and all((target / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def discard(folder: Path) -> None:
    """Remove the written model, so that the next `write_onnx` makes it anew.

    Raises:
        EmbeddingUnavailable: it cannot be removed.
    """
    try:
        with _locked(folder):
            shutil.rmtree(folder / FOLDER, ignore_errors=True)
    except OSError as error:
        raise EmbeddingUnavailable(f"cannot replace the damaged embedding model in {folder}: {error}") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone in `folder` among all processes; the system lifts the lock of one that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(target: Path, unfinished: Path) -> None:
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        _write(unfinished)
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(folder: Path) -> None:
    from app.embeddings.graph import write_graph  # noqa: PLC0415 - onnx takes half a second to import, once

    write_graph(_checked_weights(), folder)
    for name in _COPIED:
        shutil.copyfile(bundled_file(name), folder / name)
    config = json.loads(bundled_file("tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": WINDOW}))
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    (folder / MANIFEST).write_text(json.dumps(sizes))


def _checked_weights() -> Path:
    path = bundled_file("model.safetensors")
    with path.open("rb") as weights:
        found = hashlib.file_digest(weights, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        raise EmbeddingUnavailable(
            f"{path} is not the official model (SHA-256 {found}, expected {WEIGHTS_SHA256}); "
            "install Priors' dependencies again"
        )
    return path
