"""Writes small embedding models of each shape that exports have, which fastembed loads."""

import json
import shutil
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from app.foundation.models.tokens import MINILM

WIDTH, VOCABULARY = 8, 30_522
WINDOW = 16
"""Tokens that the models read."""
COPIED = ("config.json", "tokenizer.json", "special_tokens_map.json")
TABLE = np.random.default_rng(7).normal(size=(VOCABULARY, WIDTH)).astype(np.float32)
"""The vector of each token."""


def write_model(
    folder: Path, *, file: str = "onnx/model.onnx", pooled: str = "", token_types: bool = True, **pooling: bool
) -> Path:
    """Writes a model that looks each token up in TABLE.

    Its output is a vector for each token, and `pooled`, if given, the vector of the text: the sum of its tokens'.
    `pooling` is written as sentence-transformers has it in `1_Pooling/config.json`.
    """
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_model(pooled, token_types=token_types))
    for name in COPIED:
        shutil.copyfile(MINILM / name, folder / name)
    config = json.loads((MINILM / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": WINDOW}))
    if pooling:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH, **pooling}))
    return folder


def _model(pooled: str, *, token_types: bool) -> bytes:
    names = ("input_ids", "attention_mask", *(("token_type_ids",) if token_types else ()))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"])]
    if token_types:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["types", "last"], ["types_down"]),
            helper.make_node("Add", ["looked_up", "types_down"], ["last_hidden_state"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["looked_up"], ["last_hidden_state"]))
    if pooled:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["read"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["read", "last"], ["read_down"]),
            helper.make_node("Mul", ["last_hidden_state", "read_down"], ["kept"]),
            helper.make_node("ReduceSum", ["kept", "middle"], [pooled], keepdims=0),
        ]
        outputs.append(helper.make_tensor_value_info(pooled, TensorProto.FLOAT, ["batch", WIDTH]))
    used = {name for node in nodes for name in node.input}
    values = {"table": TABLE, "last": np.array([2]), "middle": np.array([1])}
    constants = [numpy_helper.from_array(value, name) for name, value in values.items() if name in used]
    graph = helper.make_graph(nodes, "looks-up", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())
