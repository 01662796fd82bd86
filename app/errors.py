"""Every error that Priors raises on purpose.

    PriorsError
    ├── InvalidInput          the caller sent something that cannot be taken; names the field
    │   └── Refused           it could be taken, but would not be worth or safe to keep; names the reason
    ├── Forbidden             a person must do this, by the panel, the command line or the admin key
    ├── NotFound              the thing asked for is not in this workspace
    ├── Unavailable           a part that is needed does not answer
    │   ├── DatabaseUnavailable
    │   │   └── ConnectionsInUse
    │   ├── StorageFull
    │   ├── EmbeddingUnavailable
    │   ├── RerankerUnavailable
    │   ├── LLMUnavailable
    │   ├── TokenizerUnavailable
    │   └── GraphUnavailable
    └── ConfigurationError    a setting, a folder or a port that a person must change first

A message says what is wrong and how to mend it. Each door turns errors into its own form (a status code, an exit code).
"""

from collections.abc import Iterable, Iterator, Mapping


class PriorsError(Exception):
    """The root of the tree: catch this to catch all that Priors raises on purpose."""


class InvalidInput(PriorsError):
    """The input of the caller is not valid.

    `field` is the path of the offending field as the caller wrote it (`filters.kind`), or "" for the whole input.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


def told_apart(reason: str) -> tuple[str, str]:
    """Splits a reason of the form `field: message` into the field and the message."""
    field, _, message = reason.partition(": ")
    return field, message


def check(reasons: Iterable[str]) -> None:
    """Raises InvalidInput for the first of these reasons, each of the form `field: message`."""
    for reason in reasons:
        raise InvalidInput(*told_apart(reason))


def limit_reasons(limits: Mapping[str, int | None], highest: int) -> Iterator[str]:
    """Yields the reasons against limits that are out of range; None, for the setting's limit, never is."""
    for name, value in limits.items():
        if value is not None and not 0 <= value <= highest:
            yield f"{name}: must be from 0, which stands for no limit, to {highest:,}"


class Refused(InvalidInput):
    """Something that would not be worth or safe to keep.

    `reason` is the short name that statistics count it by; `details` say more of it, each a flat mapping.
    """

    def __init__(
        self, field: str, message: str, *, reason: str, details: tuple[Mapping[str, object], ...] = ()
    ) -> None:
        super().__init__(field, message)
        self.reason = reason
        self.details = details


class Forbidden(PriorsError):
    """Only a person may do this."""


class NotFound(PriorsError):
    """The thing asked for does not exist in this workspace."""


class Unavailable(PriorsError):
    """A part that is needed does not answer; trying again later may help."""


class DatabaseUnavailable(Unavailable):
    """The database cannot be reached, started or used."""


class ConnectionsInUse(DatabaseUnavailable):
    """Every connection of a pool was in use until the time for waiting was over."""


class StorageFull(Unavailable):
    """The disk of the database is full or read-only: nothing can be written; what is stored is still found."""


class EmbeddingUnavailable(Unavailable):
    """The embedding provider did not give vectors; retrieval goes on by words alone."""


class RerankerUnavailable(Unavailable):
    """The re-ranker gave no scores; the ranking stays as it is without it."""


class LLMUnavailable(Unavailable):
    """The language model did not answer; compression goes on without it."""


class TokenizerUnavailable(Unavailable):
    """A file that should be a model's tokenizer is none, so the model's tokens cannot be counted."""


class GraphUnavailable(Unavailable):
    """The layout of a graph could not be computed; everything else goes on."""


class ConfigurationError(PriorsError):
    """A setting, a folder or a port that a person must change before Priors can start."""
