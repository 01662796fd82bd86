"""A checked query, as the steps of a search take it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from app.db.database import Database
from app.retrieval.rank.presets import Preset
from app.retrieval.rank.rank import Asking
from app.retrieval.rank.roles import DEFAULT_ROLE, role_of
from app.retrieval.recall import Query
from app.retrieval.roles import roles_of
from app.workspaces.workspace import Workspace

MOST_NEEDS = 6
"""Needs of a request for which passages are scored."""


class Call(NamedTuple):
    """A checked query, with its workspace and database."""

    database: Database
    workspace: Workspace
    query: Query
    preset: Preset
    suspects: bool
    """True where memories with a suspect text are hits too."""
    measured: bool = True
    """False for a model, or a script, by whose similarities no probability was fitted."""
    passages: bool = False
    """True where the hits' passages are ranked too: of more hits than the query wants, because blocks are made of the
    passages of several."""
    needs: Sequence[str] = ()
    """The sentences of the query that name what it needs."""

    @property
    def several(self) -> Sequence[str]:
        """The first needs, if there are several and passages are ranked by them."""
        return self.needs[:MOST_NEEDS] if self.passages and len(self.needs) > 1 else ()

    @property
    def asking(self) -> Asking:
        """The query as ranking takes it; a preset that judges all memories knows no roles."""
        role = DEFAULT_ROLE if self.preset.judges_all else role_of(self.query.agent, roles_of(self.workspace))
        return Asking(self.query.text, self.query.moment, role)

    def before_passages(self, *, has_vector: bool) -> Preset:
        """Returns the preset by which memories are found whose passages tell if the query has an answer."""
        threshold = self.preset.threshold
        if not (self.passages and self.measured and has_vector) or threshold is None:
            return self.preset
        return replace(self.preset, threshold=threshold.of_memories())
