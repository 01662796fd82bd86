"""Writes a cross-encoder that fastembed can load: its score counts the words that query and text share."""

import json
import shutil
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from app.foundation.models.tokens import MINILM

MODEL = "Xenova/ms-marco-MiniLM-L-6-v2"
"""A name that fastembed knows; it determines the files' places."""
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
COPIED = ("config.json", "tokenizer.json", "special_tokens_map.json")
FRAMING = 1_030
"""Tokens below this number are special tokens, padding and punctuation, not words."""
OFFSET = 2.0


def write_cross_encoder(folder: Path) -> Path:
    """Writes the model into `folder`: its score is the number of pairs of equal words, minus OFFSET."""
    (folder / "onnx").mkdir(parents=True)
    for name in COPIED:
        shutil.copyfile(MINILM / name, folder / name)
    config = json.loads((MINILM / "tokenizer_config.json").read_bytes())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": 512}))
    (folder / "onnx" / "model.onnx").write_bytes(_model())
    return folder


def _model() -> bytes:
    def constant(name: str, value: object) -> TensorProto:
        return numpy_helper.from_array(np.array(value), name)

    nodes = [
        helper.make_node("Unsqueeze", ["input_ids", "last"], ["down"]),
        helper.make_node("Unsqueeze", ["input_ids", "middle"], ["across"]),
        helper.make_node("Equal", ["down", "across"], ["same"]),
        helper.make_node("Greater", ["input_ids", "framing"], ["word"]),
        helper.make_node("Equal", ["token_type_ids", "zero"], ["in_query"]),
        helper.make_node("And", ["word", "in_query"], ["asked"]),
        helper.make_node("Unsqueeze", ["asked", "last"], ["asked_down"]),
        helper.make_node("Cast", ["token_type_ids"], ["in_text"], to=TensorProto.BOOL),
        helper.make_node("Unsqueeze", ["in_text", "middle"], ["text_across"]),
        helper.make_node("And", ["same", "asked_down"], ["pair_asked"]),
        helper.make_node("And", ["pair_asked", "text_across"], ["pair"]),
        helper.make_node("Cast", ["pair"], ["counted"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["counted", "both"], ["sum"], keepdims=0),
        helper.make_node("Sub", ["sum", "offset"], ["score"]),
        helper.make_node("Unsqueeze", ["score", "middle"], ["logits"]),
    ]
    constants = [
        constant("last", [2]),
        constant("middle", [1]),
        constant("both", [1, 2]),
        constant("zero", np.int64(0)),
        constant("framing", np.int64(FRAMING)),
        constant("offset", np.float32(OFFSET)),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in INPUTS]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])]
    graph = helper.make_graph(nodes, "overlap", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())
