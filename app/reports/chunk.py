"""The value that both chunkers make."""

from dataclasses import dataclass
from datetime import datetime

TRAIL_SEPARATOR = " › "


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a report file, at most the model's window long, its trail included."""

    trail: tuple[str, ...]
    """File title › heading › heading; never empty."""
    text: str
    pointer: str = ""
    """RFC 6901 pointer of the JSON value it was made from; "" for Markdown and for a whole document."""
    occurred_at: datetime | None = None
    final_score: float | None = None
    """The evaluator's score, 0 to 10."""
    left_out: int = 0
    """Chunks of the document that were not kept after this one."""

    @property
    def title(self) -> str:
        """The trail in one line: what stands above the text wherever the chunk is embedded or shown."""
        return TRAIL_SEPARATOR.join(self.trail)
