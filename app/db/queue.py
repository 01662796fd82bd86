"""The jobs that a transaction may ask a worker for. `app/worker` says what each of them does."""

from types import MappingProxyType

STATISTICS, EMBED, INDEX = "refresh_statistics", "embed_waiting", "index_vectors"
COMPRESS, LINK = "compress", "link_waiting"
PRIORITIES = MappingProxyType({STATISTICS: 40, EMBED: 30, INDEX: 20, COMPRESS: 10, LINK: 0})
"""The greatest is fetched first: short tasks before those that a language model may take minutes for; links last."""
ALONE = frozenset({STATISTICS, EMBED, INDEX, LINK})
"""Tasks of which two with one lock would do the same work: the second is not fetched before the first has ended, so it
takes no worker's place."""
