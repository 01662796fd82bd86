"""The weights of a preset as numbers by name, so that a workspace can have its own and a fit can change them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from app.retrieval.rank.presets import Preset

PARTS = ("blend", "text_features")
"""The parts of a preset whose numbers say how relevant a memory is. Quality and age count as they do for all."""


def weights_of(preset: Preset) -> dict[str, float]:
    """Returns every weight of a preset's relevance by its name, like `blend.lexical` and `blend.links.mentions`."""
    return dict(_numbers(preset))


def with_weights(preset: Preset, weights: Mapping[str, float]) -> Preset:
    """Returns the preset with these weights; names that it does not have are of another version, and left out."""
    changed = {name: getattr(preset, name) for name in PARTS}
    for name in weights_of(preset).keys() & weights.keys():
        part, field, *entry = name.split(".")
        before, value = getattr(changed[part], field), weights[name]
        changed[part] = replace(changed[part], **{field: {**before, entry[0]: value} if entry else value})
    return replace(preset, **changed)


def _numbers(preset: Preset) -> Iterator[tuple[str, float]]:
    for name in PARTS:
        part: Any = getattr(preset, name)
        for field in fields(part) if part is not None else ():
            value = getattr(part, field.name)
            if isinstance(value, Mapping):
                yield from ((f"{name}.{field.name}.{entry}", number) for entry, number in value.items())
            elif isinstance(value, float):
                yield f"{name}.{field.name}", value
