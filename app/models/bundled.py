"""The official MiniLM weights, written as an ONNX graph.

The graph is BERT's encoder as ONNX Runtime runs it best. *Measured* on 2 cores, queries of 8 tokens and texts of
137: with the fused `Attention` of ONNX Runtime 1.5 ms and 80–84 texts/s; with attention spelled out in plain ONNX
1.6 ms and 75–83; with `SkipLayerNormalization` and `BiasGelu` fused too 1.7 ms and 72–77, for they use one core.
"""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from safetensors import safe_open

from app.errors import EmbeddingUnavailable
from app.models.tokenizer import bundled_file

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
DIMENSION = 384
WINDOW = 256
"""Tokens the model reads, the two that frame a sequence included: the `max_seq_length` it was published with."""
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the official model.safetensors."""
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
    """Tells whether each file is there with the size that the manifest, written last, gives."""
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
    from app.models.bundled import write_graph  # noqa: PLC0415 - onnx takes half a second to import, once

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


HIDDEN, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12
"""Values of the model's own config.json."""
OPSET = 20
"""The first with Gelu."""
IR_VERSION = 9
RUNTIME_DOMAIN = "com.microsoft"
MODEL_FILE, DATA_FILE = "model.onnx", "model.onnx_data"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TOKENS_OUTPUT, POOLED_OUTPUT = "last_hidden_state", "sentence_embedding"
PAGE = 4096
"""Bytes; weights start on a page, so that the runtime maps the file instead of reading it."""


def write_graph(weights: Path, folder: Path) -> None:
    """Write `model.onnx` and `model.onnx_data` into `folder`.

    The graph takes INPUTS, int64 of shape (batch, sequence), and gives the vector of each token,
    `last_hidden_state` (batch, sequence, 384), and their mean, `sentence_embedding` (batch, 384), of unit length.

    Raises:
        OSError: a file cannot be read or written.
    """
    with safe_open(weights, framework="numpy") as tensors, (folder / DATA_FILE).open("wb") as data:
        model = _Encoder(tensors, data).model()
    (folder / MODEL_FILE).write_bytes(model.SerializeToString())


class _Encoder:
    """Collects nodes and weights; each method returns the name of the value it adds."""

    def __init__(self, tensors: safe_open, data: BinaryIO) -> None:
        self._tensors = tensors
        self._data = data
        self._nodes: list[NodeProto] = []
        self._initializers: list[TensorProto] = []

    def model(self) -> ModelProto:
        """The whole model; its weights are in the data file by then."""
        self._encode()
        inputs = [_value(name, TensorProto.INT64, ["batch", "sequence"]) for name in INPUTS]
        outputs = [
            _value(TOKENS_OUTPUT, TensorProto.FLOAT, ["batch", "sequence", HIDDEN]),
            _value(POOLED_OUTPUT, TensorProto.FLOAT, ["batch", HIDDEN]),
        ]
        graph = helper.make_graph(self._nodes, "minilm", inputs, outputs, self._initializers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME_DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="priors")

    def _encode(self) -> None:
        mask = self._node("Cast", "attention_mask", to=TensorProto.INT32)
        tokens = self._embedded()
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}."
            attended = self._attended(tokens, mask, prefix + "attention.")
            tokens = self._fed_forward(attended, prefix)
        self._nodes.append(helper.make_node("Identity", [tokens], [TOKENS_OUTPUT]))
        self._pool(tokens)

    def _embedded(self) -> str:
        """Word, position and type embeddings, added and normalised."""
        zero, one = self._integers("zero", 0), self._integers("one", 1)
        length = self._node("Gather", self._node("Shape", "input_ids"), one)
        positions = self._node("Slice", self._table("position"), zero, length, zero)
        words = self._node("Gather", self._table("word"), "input_ids")
        types = self._node("Gather", self._table("token_type"), "token_type_ids")
        total = self._node("Add", self._node("Add", words, types), positions)
        return self._normalised(total, "embeddings.LayerNorm")

    def _attended(self, tokens: str, mask: str, prefix: str) -> str:
        names = [f"{prefix}self.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self._tensor(f"{name}.weight").T for name in names], axis=1)
        bias = np.concatenate([self._tensor(f"{name}.bias") for name in names])
        inputs = (tokens, self._weight(f"{prefix}weight", matrix), self._weight(f"{prefix}bias", bias), mask)
        heads = self._node("Attention", *inputs, domain=RUNTIME_DOMAIN, num_heads=HEADS)
        projected = self._linear(heads, f"{prefix}output.dense")
        return self._normalised(self._node("Add", projected, tokens), f"{prefix}output.LayerNorm")

    def _fed_forward(self, tokens: str, prefix: str) -> str:
        widened = self._node("Gelu", self._linear(tokens, f"{prefix}intermediate.dense"))
        narrowed = self._linear(widened, f"{prefix}output.dense")
        return self._normalised(self._node("Add", narrowed, tokens), f"{prefix}output.LayerNorm")

    def _pool(self, tokens: str) -> None:
        """Mean of the tokens that the mask keeps, of unit length: the sum points the same way as the mean."""
        kept = self._node("Cast", "attention_mask", to=TensorProto.FLOAT)
        row = self._node("Unsqueeze", kept, "one")
        total = self._node("Squeeze", self._node("MatMul", row, tokens), "one")
        length = self._node("ReduceL2", total, "one", keepdims=1)
        self._nodes.append(helper.make_node("Div", [total, length], [POOLED_OUTPUT]))

    def _linear(self, value: str, name: str) -> str:
        matrix = self._weight(f"{name}.weight", self._tensor(f"{name}.weight").T)
        return self._node("Add", self._node("MatMul", value, matrix), self._stored(f"{name}.bias"))

    def _normalised(self, value: str, name: str) -> str:
        scale, bias = self._stored(f"{name}.weight"), self._stored(f"{name}.bias")
        return self._node("LayerNormalization", value, scale, bias, axis=-1, epsilon=EPSILON)

    def _table(self, kind: str) -> str:
        return self._stored(f"embeddings.{kind}_embeddings.weight")

    def _stored(self, name: str) -> str:
        return self._weight(name, self._tensor(name))

    def _tensor(self, name: str) -> NDArray[np.float32]:
        tensor: NDArray[np.float32] = self._tensors.get_tensor(name)  # type: ignore[no-untyped-call]  # bare stubs
        return tensor

    def _weight(self, name: str, values: NDArray[np.float32]) -> str:
        """Append `values` to the data file and refer to them."""
        self._data.write(bytes(-self._data.tell() % PAGE))
        offset = self._data.tell()
        length = self._data.write(values.tobytes())
        tensor = TensorProto(
            name=name, dims=values.shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
        )
        for key, value in (("location", DATA_FILE), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self._initializers.append(tensor)
        return name

    def _integers(self, name: str, *values: int) -> str:
        self._initializers.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def _node(self, operator: str, *inputs: str, domain: str = "", **attributes: float) -> str:
        name = f"{operator}_{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [name], name=name, domain=domain)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return name


def _value(name: str, kind: int, shape: list[str | int]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
