"""How close the estimate of tokens is to real tokenizers, on texts that it was not fitted on.

The tokenizers' tables come from packages that were fetched and unpacked into a folder: `js-tiktoken` and
`@anthropic-ai/tokenizer` of npm, `mistral-common` of PyPI.
"""

import argparse
import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiktoken import Encoding

from app.foundation.models.tokens import Estimate
from benchmarks.figures import Figure, report

TEXTS = Path(__file__).parents[1] / "tests" / "foundation" / "models" / "texts"
PIECE = 1_000
"""Characters of a piece, which is the shortest text that is judged."""
LEAST = 0.95
ENCODINGS = ("cl100k_base", "o200k_base")


def pieces(path: Path) -> list[str]:
    """Returns a text in whole pieces."""
    text = path.read_text(encoding="utf-8")
    return [text[start : start + PIECE] for start in range(0, len(text) - PIECE + 1, PIECE)]


def ranks(lines: str) -> dict[bytes, int]:
    """Returns the tables that npm's packages hold: in each line a first rank, and tokens."""
    found: dict[bytes, int] = {}
    for line in filter(str.strip, lines.split("\n")):
        _, first, *tokens = line.split(" ")
        found |= {base64.b64decode(token): int(first) + place for place, token in enumerate(tokens)}
    return found


def tokenizers(packages: Path) -> dict[str, Encoding]:
    """Returns the tokenizers of the unpacked packages."""
    found: dict[str, Encoding] = {}
    for name in ENCODINGS:
        for path in packages.glob(f"**/dist/ranks/{name}.js"):
            text = path.read_text(encoding="utf-8")
            values = json.loads(text[text.index("{") : text.rindex("}") + 1])
            found[name] = _made(name, values["pat_str"], ranks(values["bpe_ranks"]))
    for path in packages.glob("**/claude.json"):
        values = json.loads(path.read_bytes())
        found["anthropic"] = _made("anthropic", values["pat_str"], ranks(values["bpe_ranks"]))
    for path in sorted(packages.glob("**/tekken_*.json"))[-1:]:
        found["tekken"] = _tekken(json.loads(path.read_bytes()))
    return found


def _tekken(values: Mapping[str, Any]) -> Encoding:
    config = values["config"]
    most = config["default_vocab_size"] - config["default_num_special_tokens"]
    known = {base64.b64decode(item["token_bytes"]): int(item["rank"]) for item in values["vocab"][:most]}
    return _made("tekken", config["pattern"], known)


def _made(name: str, pattern: str, known: dict[bytes, int]) -> Encoding:
    return Encoding(name, pat_str=pattern, mergeable_ranks=known, special_tokens={})


def counts(found: Mapping[str, Encoding]) -> dict[str, list[dict[str, int]]]:
    """Returns the tokens of each piece of each text, by tokenizer."""
    return {
        path.stem: [{name: len(item.encode_ordinary(piece)) for name, item in found.items()} for piece in pieces(path)]
        for path in sorted(TEXTS.glob("*.txt"))
    }


def measured(found: Mapping[str, Sequence[Mapping[str, int]]]) -> list[Figure]:
    """Returns the figures: the estimate by the real counts."""
    figures: list[Figure] = []
    for text, real in found.items():
        guessed = Estimate().count_many(pieces(TEXTS / f"{text}.txt"))
        for name in real[0]:
            shares = [one / item[name] for one, item in zip(guessed, real, strict=True)]
            figures += [
                Figure(
                    name=f"{text}, {name}: estimate ÷ tokens, least of {len(shares)}", value=min(shares), at_least=LEAST
                ),
                Figure(name=f"{text}, {name}: of all", value=sum(guessed) / sum(item[name] for item in real)),
            ]
    return figures


def main(arguments: Sequence[str] | None = None) -> list[Figure]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, help="folder of the unpacked packages; without it the stored counts")
    parser.add_argument("--write", action="store_true", help="store the counts, which the tests compare with")
    options = parser.parse_args(arguments)
    stored = TEXTS / "counts.json"
    found = counts(tokenizers(options.packages)) if options.packages else json.loads(stored.read_bytes())
    if options.write:
        stored.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    figures = measured(found)
    report("tokens", figures)
    return figures


if __name__ == "__main__":
    main()
