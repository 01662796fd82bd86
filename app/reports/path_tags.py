"""Tags from a report's path."""

from pathlib import PurePosixPath

from app.memories.admission import TAG_LIMIT, TAGS_LIMIT


def path_tags(path: PurePosixPath) -> tuple[str, ...]:
    """The names of the folders that a report stands in, lower-cased, each once: `bads-russia`, `v6`."""
    names = (part.strip().lower()[:TAG_LIMIT] for part in path.parts[:-1])
    return tuple(dict.fromkeys(name for name in names if name.strip("./")))[:TAGS_LIMIT]
