"""Reads data: the TOML files of a package, and lines of JSON."""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import TypeVar

import msgspec

_T = TypeVar("_T")


def read_toml(package: str, name: str, kind: type[_T]) -> _T:
    """Reads a TOML file that stands beside the modules of a package."""
    return msgspec.toml.decode(files(package).joinpath(name).read_bytes(), type=kind)


def read_json(text: bytes | str, kind: type[_T]) -> _T | str:
    """Returns the value of a JSON text, or the reason why it is none of this kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"is not JSON: {error}"


def json_lines(lines: Iterable[bytes], kind: type[_T], *, longest: int | None = None) -> Iterator[tuple[int, _T | str]]:
    """Yields the number, from 1, and the value of each line that is not blank, or the reason why it has none."""
    for number, line in enumerate(lines, start=1):
        if longest is not None and len(line) > longest:
            yield number, f"is longer than {longest:,} bytes"
        elif line.strip():
            yield number, read_json(line.removeprefix(BOM_UTF8) if number == 1 else line, kind)
