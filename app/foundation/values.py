"""The decorator of frozen values."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[_T]) -> type[_T]:
    """Makes a class one of frozen values, whose fields are given by their names."""
    return dataclass(frozen=True, slots=True, kw_only=True)(kind)
