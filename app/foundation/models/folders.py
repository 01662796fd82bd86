"""Loads an embedding model from a folder that a setting names, without a hub.

fastembed knows the shape of the models that it lists. For any other, the folder has what an export for
sentence-transformers has, which says how token vectors become one: `modules.json` and `1_Pooling/config.json`.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.errors import EmbeddingUnavailable
from app.foundation.models.protocols import Window
from app.foundation.models.tokens import TokenizerFile

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import PoolingType

NAMES = ("onnx/model.onnx", "model.onnx")
"""The usual places of a model among several ONNX files of a folder, the first one preferred."""
POOLED = "sentence_embedding"
"""The output in which exports give the vector of the whole text."""
POOLINGS = {
    "pooling_mode_cls_token": "CLS",
    "pooling_mode_mean_tokens": "MEAN",
    "pooling_mode_lasttoken": "LAST_TOKEN",
}
"""sentence-transformers' names of the ways of pooling, and fastembed's."""
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def folder_of(setting: str, model: str, *, configured: bool) -> Path | None:
    """Returns the folder of a model's files: the one named after it (`--` for a slash) in the folder of the setting, or
    else, for the configured model, that folder itself; None if there is neither."""
    if not setting:
        return None
    folder = Path(setting).expanduser()
    named = folder / model.replace("/", "--")
    if named.is_dir():
        return named
    holds_models = next(folder.glob(f"*/{TOKENIZER[0]}"), None) is not None
    return folder if configured and not holds_models else None


def open_folder(model: str, folder: Path, dimension: int, **options: Any) -> "TextEmbedding":  # noqa: ANN401 - fastembed's own
    """Loads a model from its folder.

    Raises:
        EmbeddingUnavailable: a file is missing, or the files do not say how the model gives a vector.
    """
    from fastembed import TextEmbedding  # noqa: PLC0415 - takes a second to import

    for name in TOKENIZER:
        if not (folder / name).is_file():
            raise EmbeddingUnavailable(f"{folder} has no {name}: PRIORS_EMBEDDING_FOLDER names the files of {model}")
    known = next((it["model_file"] for it in TextEmbedding.list_supported_models() if _same(it["model"], model)), None)
    name = model if known and (folder / known).is_file() else _register(folder, dimension)
    return TextEmbedding(name, specific_model_path=str(folder), **options)


def _same(known: str, model: str) -> bool:
    return known.lower() == model.lower()


def _register(folder: Path, dimension: int) -> str:
    """Tells fastembed of the model of a folder, and returns the name under which it now knows it."""
    from fastembed import TextEmbedding  # noqa: PLC0415 - as above
    from fastembed.common.model_description import ModelSource  # noqa: PLC0415 - as above

    file = _model_file(folder)
    output, pooling = _shape(folder, file)
    name = f"{folder}:{output}:{pooling.value}"
    if not any(_same(known["model"], name) for known in TextEmbedding.list_supported_models()):
        TextEmbedding.add_custom_model(
            model=name,
            pooling=pooling,
            normalization=False,
            sources=ModelSource(hf=name),
            dim=dimension,
            model_file=file,
            output_name=output,
        )
    return name


def _model_file(folder: Path) -> str:
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.onnx"))
    if len(found) == 1:
        return found[0]
    usual = next((name for name in NAMES if name in found), None)
    if usual is None:
        raise EmbeddingUnavailable(f"{folder} must have one ONNX file, or {NAMES[0]} among them; it has {len(found)}")
    return usual


def _shape(folder: Path, file: str) -> tuple[str, "PoolingType"]:
    """Returns the output to read and its pooling."""
    from fastembed.common.model_description import PoolingType  # noqa: PLC0415 - takes a second to import

    ranks = _outputs(folder / file)
    if POOLED in ranks:
        return POOLED, PoolingType.DISABLED
    output, rank = next(iter(ranks.items()))
    if (dense := _dense(folder)) is not None:
        raise EmbeddingUnavailable(
            f"the model in {folder} ends in a layer that its ONNX file lacks ({dense}): export it with the output"
            f" {POOLED}"
        )
    if rank == 2:  # noqa: PLR2004 - texts and numbers
        return output, PoolingType.DISABLED
    return output, PoolingType(_pooling(folder))


def _outputs(path: Path) -> dict[str, int]:
    """Returns the number of axes of each output of an ONNX model."""
    import onnxruntime  # type: ignore[import-untyped] # noqa: PLC0415 - as above; the package has no types

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {output.name: len(output.shape) for output in session.get_outputs()}


def _dense(folder: Path) -> str | None:
    """Returns the name of a layer after the pooling; None if there is none."""
    modules = folder / "modules.json"
    listed = json.loads(modules.read_bytes()) if modules.is_file() else ()
    return next((str(module.get("path")) for module in listed if str(module.get("type")).endswith("Dense")), None)


def _pooling(folder: Path) -> str:
    stated = folder / "1_Pooling" / "config.json"
    if not stated.is_file():
        raise EmbeddingUnavailable(
            f"{folder} does not say how its token vectors become one: copy 1_Pooling/config.json of the model, too"
        )
    config = json.loads(stated.read_bytes())
    used = [mode for mode, value in config.items() if mode.startswith("pooling_mode") and value is True]
    if len(used) != 1 or used[0] not in POOLINGS:
        raise EmbeddingUnavailable(f"{stated} names {', '.join(used) or 'no pooling'}; known are {', '.join(POOLINGS)}")
    return POOLINGS[used[0]]


def own_window(model: "TextEmbedding") -> Window:
    """Returns what a model reads of a text, counted with its own tokenizer."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - takes a tenth of a second to import

    tokenizer = Tokenizer.from_str(model.model.tokenizer.to_str())  # type: ignore[attr-defined] # each kind of model has one
    assert tokenizer.truncation is not None, "fastembed sets it"  # noqa: S101
    tokens = tokenizer.truncation["max_length"] - tokenizer.num_special_tokens_to_add(is_pair=False)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Window(tokens, TokenizerFile(model.model_name, tokenizer))
