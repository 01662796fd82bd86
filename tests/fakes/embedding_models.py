"""Writes a small embedding model, which fastembed loads."""

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


def write_model(folder: Path) -> Path:
    """Writes a model that looks each token up in TABLE: its output is a vector for each token."""
    path = folder / "onnx" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_model())
    for name in COPIED:
        shutil.copyfile(MINILM / name, folder / name)
    config = json.loads((MINILM / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": WINDOW}))
    return folder


def _model() -> bytes:
    names = ("input_ids", "attention_mask")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    graph = helper.make_graph(nodes, "looks-up", inputs, outputs, [numpy_helper.from_array(TABLE, "table")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())
