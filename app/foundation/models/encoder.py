"""Writes the ONNX graphs of the default model from the official weights.

`encoder.onnxtxt` is BERT's encoder in the form that ONNX Runtime computes fastest. *Measured* on 2 cores, with queries
of 8 tokens and texts of 137: with ONNX Runtime's fused `Attention` 1.5 ms and 80 to 84 texts/s; with attention in plain
ONNX operators 1.6 ms and 75 to 83; with `SkipLayerNormalization` and `BiasGelu` fused too 1.7 ms and 72 to 77, because
these use one core.

Queries go through the same encoder with integer weights (`encoder_layer_int8.onnxtxt`). The vectors of documents are
exact. Two kinds of products are used:

- MatMulNBits, with 8-bit weights, for both output projections. It scales each block of 64 weights by itself, and each
  block of 64 numbers of a token.
- MatMulIntegerToFloat, with 7-bit weights, for the two products that read a normalised token. It has one scale for all
  numbers of the tokens, so each of the 384 numbers is first multiplied by a factor of its own: without that, the few
  numbers that are ten times as large as the others leave these no precision. No scale depends on the query, so a
  query's vector doesn't depend on the queries that are embedded with it. 7 bits are safe on processors without VNNI,
  where sums of two products have 16 bits.

*Measured* as processor time of one run by turns, on 2 cores (load 24): queries of 10, 27 and 40 tokens take 1.87, 2.95
and 3.88 ms; 3.87, 6.09 and 7.58 ms by the exact graph; 2.01, 3.64 and 4.92 ms with MatMulNBits alone. Over 1,973
questions and tasks the cosine to the exact vector is 0.9990 on average and 0.9976 at worst; over 315 texts of
punctuation, digits, single letters or other scripts it is 0.9972 and 0.9945.

Recall@5 and @10, with MatMulNBits alone in brackets: LoCoMo dev 0.7568 (0.7571) and 0.8265 (0.8264), REALTALK dev
0.4880 (0.4880) and 0.5535 (0.5551). With `output.dense` in the second form, too, the least cosine of texts without
words falls below 0.99.

The graph of an adapted model is the query graph with other weights in its upper layers. The ranges of the unadapted
layers serve it too: for plans, cosines to exact adapted vectors are 0.9989 on average and 0.9978 at worst over 200
texts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, parser
from safetensors import safe_open

from app.foundation.models.runtime import ADAPTED_FILES, QUERY_FILE, inputs_of, open_session
from app.foundation.models.tokens import MINILM

LAYERS = 6
_MODEL_FILE, _DATA_FILE = "model.onnx", "model.onnx_data"
_PAGE = 4096
"""Bytes of a memory page. Weights start on one, so that the runtime maps the file instead of reading it."""
_INT8_BLOCK = 64
"""Numbers of a row that share a scale; with 32 and 128 the least cosine is 0.9995 and 0.9987."""
_INT8_ZERO = 128
"""The byte that stands for 0."""
_INT8_MOST, INT7_MOST = 127, 63
"""Largest values of signed integers of 8 and 7 bits."""
_NORMALISED = {"attention.self.qkv.weight": "tokens", "intermediate.dense.weight": "attended"}
"""The matrices in 7 bits of a layer, and the value of the exact graph that each of them is multiplied with."""
_RANGE_SHARE = 0.7
"""Share of a number's range that its factor removes; the rest goes into the weights. Least cosines of questions and of
texts without words with 0.6, 0.7 and 0.8: 0.9981 and 0.993, 0.9982 and 0.994, 0.9972 and 0.990."""
_SAMPLE_LENGTHS, _SAMPLES = (4, 8, 16, 32), 16
"""Lengths in tokens of the sequences by which ranges are measured, and sequences of each length and vocabulary part."""
_SAMPLED_TOKENS = ((999, 1064), (1996, 30522))
"""Parts of the vocabulary: punctuation and digits, and words."""
ADAPTERS: Mapping[str, Path] = {name: MINILM / f"{name}.safetensors" for name in ADAPTED_FILES}
"""Additions to matrices of the upper layers: for each, two factors of low rank, whose product is added (LoRA, Hu et al.
2021, arXiv:2106.09685). `python -m benchmarks.adapter` trains that of plans, `python -m benchmarks.lesson_reader`
that of lessons."""
HEAD = "head"
"""The weights of a text's vector for one number. A graph whose adapter has them gives that number for the vector."""
_OUTPUT = "sentence_embedding"
_VECTOR = f"{_OUTPUT} = Div (total, norm)"
_DECLARED, _NUMBER_DECLARED = f"float[batch, 384] {_OUTPUT}", f"float[batch, 1] {_OUTPUT}"
_FIRST_TOKEN, _LAST_TOKEN = 101, 102
"""The special tokens at both ends of a text."""

_Ranges = Mapping[str, NDArray[np.float32]]
"""The largest magnitude of each number of the value that a matrix is multiplied with, by the name of the matrix."""


def write_graphs(weights: Path, folder: Path) -> None:
    """Writes the graphs and, into a file of its own, the weights that they name.

    The graph of an adapted model has the layers of the query graph below the ones that the adapter changes.
    """
    written: dict[str, TensorProto] = {}
    with safe_open(weights, framework="numpy") as tensors, (folder / _DATA_FILE).open("wb") as data:
        exact = _written_graph("encoder_layer", data, written, partial(_weight, tensors, {}))
        (folder / _MODEL_FILE).write_bytes(exact.SerializeToString())
        data.flush()
        ranges = _ranges(exact, folder)
        queries = _written_graph("encoder_layer_int8", data, written, partial(_weight, tensors, ranges))
        (folder / QUERY_FILE).write_bytes(queries.SerializeToString())
        for name, file in ADAPTED_FILES.items():
            with safe_open(ADAPTERS[name], framework="numpy") as stored:
                adapter = _Adapter(name, tensors, stored)
                weight = partial(_weight, adapter, ranges)
                adapted = _written_graph("encoder_layer_int8", data, written, weight, adapter)
            (folder / file).write_bytes(adapted.SerializeToString())


class _Adapter:
    """Reads the weights with the additions of an adapter."""

    def __init__(self, name: str, tensors: safe_open, adapter: safe_open) -> None:
        self.name, self._tensors, self._adapter = name, tensors, adapter
        self._stored = frozenset(adapter.keys())  # type: ignore[no-untyped-call]  # bare stubs
        self.has_head = HEAD in self._stored
        self.layers = frozenset(int(key.split(".")[2]) for key in self._stored - {HEAD})
        """The numbers of the layers that it changes."""

    def get_tensor(self, name: str) -> NDArray[np.float32]:
        """Returns a weight by its name in the graph."""
        if name == f"{self.name}.{HEAD}":
            return self._own(HEAD)
        name = _in_encoder(name)
        tensor: NDArray[np.float32] = self._tensors.get_tensor(name)  # type: ignore[no-untyped-call]  # bare stubs
        return tensor + self._own(f"{name}.up") @ self._own(f"{name}.down") if f"{name}.up" in self._stored else tensor

    def _own(self, name: str) -> NDArray[np.float32]:
        own: NDArray[np.float32] = self._adapter.get_tensor(name).astype(np.float32)  # type: ignore[no-untyped-call]  # as above
        return own


def _in_encoder(name: str) -> str:
    """Returns the name that a weight of an adapted layer has in the official weights."""
    return f"encoder.{name[name.index('layer.') :]}" if "layer." in name else name


def _written_graph(
    layer: str,
    data: BinaryIO,
    written: dict[str, TensorProto],
    weight: Callable[[str], NDArray[Any]],
    adapter: _Adapter | None = None,
) -> ModelProto:
    """Returns a graph whose weights are in the data file; appends those that are not yet `written`.

    The weights of the layers that the adapter changes have names of their own.
    """
    model = parser.parse_model(_graph_text(layer, adapter))
    for name in _named_weights(model):
        if name not in written:
            written[name] = _written_weight(data, name, weight(name))
        model.graph.initializer.append(written[name])
    return model


def _ranges(exact: ModelProto, folder: Path) -> _Ranges:
    """Measures the ranges with sequences of random tokens.

    Which numbers are large hardly depends on the text: ranges of real questions give the same cosines.
    """
    values = {
        f"encoder.layer.{layer}.{matrix}": f"{value}_{layer}"
        for layer in range(LAYERS)
        for matrix, value in _NORMALISED.items()
    }
    shown = ModelProto()
    shown.CopyFrom(exact)
    shown.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in values.values())
    (graph := folder / "ranges.onnx").write_bytes(shown.SerializeToString())
    try:
        session = open_session(graph)
        found = [session.run([*values.values()], inputs_of(tokens, np.ones_like(tokens))) for tokens in _samples()]
    finally:
        graph.unlink()
    largest = [[np.abs(value).max((0, 1)) for value in run] for run in found]
    return dict(zip(values, np.max(largest, axis=0), strict=True))


def _samples() -> Iterator[NDArray[np.int64]]:
    random = np.random.default_rng(0)
    for length in _SAMPLE_LENGTHS:
        for first, end in _SAMPLED_TOKENS:
            tokens = random.integers(first, end, (_SAMPLES, length))
            tokens[:, 0], tokens[:, -1] = _FIRST_TOKEN, _LAST_TOKEN
            yield tokens


def _graph_text(layer: str, adapter: _Adapter | None) -> str:
    graph, text = (Path(__file__).with_name(f"{name}.onnxtxt").read_text() for name in ("encoder", layer))
    own, changed = (text, ()) if adapter is None else (text.replace('"encoder.', f'"{adapter.name}.'), adapter.layers)
    layers = ((own if number in changed else text).format(n=number, next=number + 1) for number in range(LAYERS))
    if adapter is not None and adapter.has_head:
        number = f'unit = Div (total, norm)\n    {_OUTPUT} = MatMul (unit, "{adapter.name}.{HEAD}")'
        graph = graph.replace(_VECTOR, number).replace(_DECLARED, _NUMBER_DECLARED)
    return graph.replace("LAYERS", "".join(layers))


def _named_weights(model: ModelProto) -> Sequence[str]:
    """Returns the names in a graph that nothing in it makes."""
    made = {name for node in model.graph.node for name in node.output}
    known = made.union(value.name for value in (*model.graph.input, *model.graph.initializer)) | {""}
    return list(dict.fromkeys(name for node in model.graph.node for name in node.input if name not in known))


def _weight(tensors: safe_open | _Adapter, ranges: _Ranges, name: str) -> NDArray[Any]:
    """Returns a weight of the graph. `.T` means transposed; `qkv` joins the weights of query, key and value.

    `.int8` and `.scales` are the two parts of a matrix in 8 bits; `.factors`, `.int7` and `.columns` the three parts of
    one in 7 bits.
    """
    matrix, _, form = name.rpartition(".")
    if form in {"int8", "scales"}:
        return _in_8_bits(_weight(tensors, ranges, f"{matrix}.T"))[form == "scales"]
    if form in (parts := ("factors", "int7", "columns")):
        return _in_7_bits(_weight(tensors, ranges, f"{matrix}.T"), ranges[_in_encoder(matrix)])[parts.index(form)]
    if "qkv" in name:
        joined = [_weight(tensors, ranges, name.replace("qkv", part)) for part in ("query", "key", "value")]
        return np.concatenate(joined, -1)
    tensor: NDArray[np.float32] = tensors.get_tensor(name.removesuffix(".T"))
    return tensor.T if name.endswith(".T") else tensor


def _in_8_bits(matrix: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Returns the columns of a matrix in blocks of bytes, as MatMulNBits reads them, and the scale of each block."""
    blocks = matrix.T.reshape(matrix.shape[1], -1, _INT8_BLOCK)
    scales = np.abs(blocks).max(-1, keepdims=True) / _INT8_MOST
    bytes_of = np.rint(blocks / np.where(scales, scales, 1)) + _INT8_ZERO
    return bytes_of.astype(np.uint8), scales.astype(np.float32).reshape(-1)


def _in_7_bits(matrix: NDArray[np.float32], ranges: NDArray[np.float32]) -> tuple[NDArray[Any], ...]:
    """Returns the factors of a token's numbers, the matrix for their products in 7 bits, and the scale of each column.

    With its factor, no number of the measured ranges is larger than a signed byte can be.
    """
    rows = np.abs(matrix).max(-1)
    factors = rows ** (1 - _RANGE_SHARE) / ranges**_RANGE_SHARE
    factors *= _INT8_MOST / (factors * ranges).max()
    even = matrix / factors[:, np.newaxis]
    scales = np.abs(even).max(0) / INT7_MOST
    return factors.astype(np.float32), np.rint(even / scales).astype(np.int8), scales.astype(np.float32)


def _written_weight(data: BinaryIO, name: str, values: NDArray[Any]) -> TensorProto:
    """Appends `values` to the data file; returns a reference to them."""
    data.write(bytes(-data.tell() % _PAGE))
    place = {"location": _DATA_FILE, "offset": data.tell(), "length": data.write(values.tobytes())}
    tensor = TensorProto(name=name, dims=values.shape)
    tensor.data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in place.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
