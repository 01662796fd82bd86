"""The default model's ONNX graphs: written from the official weights, and the one for queries opened.

`encoder.onnxtxt` is BERT's encoder in the form that ONNX Runtime computes fastest. *Measured* on 2 cores, with queries
of 8 tokens and texts of 137: with ONNX Runtime's fused `Attention` 1.5 ms and 80 to 84 texts/s; with attention in plain
ONNX operators 1.6 ms and 75 to 83; with `SkipLayerNormalization` and `BiasGelu` fused too 1.7 ms and 72 to 77, because
these use one core.

Queries go through the same encoder with 8-bit weights (`encoder_layer_int8.onnxtxt`): MatMulNBits scales each block of
64 weights by itself, and each block of 64 numbers of a token. *Measured* on 2 cores, with queries of 27 tokens: 3.1 ms
instead of 6.1. Over 1,000 questions the cosine to the exact vector is 0.9995 on average and 0.9991 at worst, and 0.997
for a text without words; one scale a column gives 0.987 (DESIGN). The vectors of documents are exact.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from app.models.protocols import Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, TensorProto
    from safetensors import safe_open
    from tokenizers import Tokenizer

LAYERS = 6
MODEL_FILE, DATA_FILE = "model.onnx", "model.onnx_data"
QUERY_FILE = "queries.onnx"
"""The graph for queries. Its 8-bit weights are in DATA_FILE, too, beside the embeddings that both graphs read."""
PAGE = 4096
"""Bytes of a memory page. Weights start on one, so that the runtime maps the file instead of reading it."""
INT8_BLOCK = 64
"""Numbers of a row that share a scale; with 32 and 128 the least cosine is 0.9995 and 0.9987."""
INT8_ZERO = 128
"""The byte that stands for 0."""


class QueryEncoder:
    """Embeds queries by the graph with 8-bit weights, each run in one thread."""

    def __init__(self, folder: Path, tokenizer: "Tokenizer") -> None:
        import onnxruntime  # type: ignore[import-untyped] # noqa: PLC0415 - takes 0.2 s to import; it has no types

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(folder / QUERY_FILE), options, ["CPUExecutionProvider"])
        self._tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Returns the vectors of unit length of these texts, a row each."""
        read = self._tokenizer.encode_batch(list(texts))
        tokens, mask = np.array([item.ids for item in read]), np.array([item.attention_mask for item in read])
        given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        vectors: Matrix = self._session.run(["sentence_embedding"], given)[0]
        return vectors


def write_graphs(weights: Path, folder: Path) -> None:
    """Writes both graphs and, into a file of its own, the weights that they name."""
    from onnx import parser  # noqa: PLC0415 - takes 0.6 s to import, and is needed once
    from safetensors import safe_open  # noqa: PLC0415 - with onnx

    written: dict[str, TensorProto] = {}
    with safe_open(weights, framework="numpy") as tensors, (folder / DATA_FILE).open("wb") as data:
        for file, layer in ((MODEL_FILE, "encoder_layer"), (QUERY_FILE, "encoder_layer_int8")):
            model = parser.parse_model(_graph_text(layer))
            for name in _named_weights(model):
                if name not in written:
                    written[name] = _written_weight(data, name, _weight(tensors, name))
                model.graph.initializer.append(written[name])
            (folder / file).write_bytes(model.SerializeToString())


def _graph_text(layer: str) -> str:
    graph, text = (Path(__file__).with_name(f"{name}.onnxtxt").read_text() for name in ("encoder", layer))
    layers = (text.format(n=number, next=number + 1) for number in range(LAYERS))
    return graph.replace("LAYERS", "".join(layers))


def _named_weights(model: "ModelProto") -> Sequence[str]:
    """Returns the names in a graph that nothing in it makes."""
    made = {name for node in model.graph.node for name in node.output}
    known = made.union(value.name for value in (*model.graph.input, *model.graph.initializer))
    return list(dict.fromkeys(name for node in model.graph.node for name in node.input if name not in known))


def _weight(tensors: "safe_open", name: str) -> "NDArray[Any]":
    """Returns a weight of the graph. `.T` means transposed; `qkv` joins the weights of query, key and value.

    `.int8` and `.scales` are the two parts of a matrix in 8 bits.
    """
    matrix, _, form = name.rpartition(".")
    if form in {"int8", "scales"}:
        return _in_8_bits(_weight(tensors, f"{matrix}.T"))[form == "scales"]
    if "qkv" in name:
        return np.concatenate([_weight(tensors, name.replace("qkv", part)) for part in ("query", "key", "value")], -1)
    tensor: NDArray[np.float32] = tensors.get_tensor(name.removesuffix(".T"))  # type: ignore[no-untyped-call]  # bare stubs
    return tensor.T if name.endswith(".T") else tensor


def _in_8_bits(matrix: "NDArray[np.float32]") -> "tuple[NDArray[np.uint8], NDArray[np.float32]]":
    """Returns the columns of a matrix in blocks of bytes, as MatMulNBits reads them, and the scale of each block."""
    blocks = matrix.T.reshape(matrix.shape[1], -1, INT8_BLOCK)
    scales = np.abs(blocks).max(-1, keepdims=True) / (INT8_ZERO - 1)
    bytes_of = np.rint(blocks / np.where(scales, scales, 1)) + INT8_ZERO
    return bytes_of.astype(np.uint8), scales.astype(np.float32).reshape(-1)


def _written_weight(data: BinaryIO, name: str, values: "NDArray[Any]") -> "TensorProto":
    """Appends `values` to the data file; returns a reference to them."""
    from onnx import TensorProto  # noqa: PLC0415 - as above

    data.write(bytes(-data.tell() % PAGE))
    place = {"location": DATA_FILE, "offset": data.tell(), "length": data.write(values.tobytes())}
    tensor = TensorProto(name=name, dims=values.shape)
    tensor.data_type = TensorProto.UINT8 if values.dtype == np.uint8 else TensorProto.FLOAT
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in place.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
