"""The tables of sessions, of cues, of activations, of contexts and of items, with named constraints."""

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from app.db.columns import (
    Id,
    default,
    deleted_with,
    index,
    keyed,
    moments,
    of_memory,
    of_user,
    of_workspace,
    optional,
    required,
)


def add_session_tables(_table: Callable[..., None]) -> None:
    """Adds the tables of sessions to the schema by its `_table`."""
    # `path` is of the file that the session was read from, `log_hash` of its content then; `extracted` is of the turns
    # that cues were made of last; `maker` makes cues of it until `made_until`. A session that a person deleted is not
    # taken in again from its file.
    _table(
        "sessions",
        *keyed(source_id=Id),
        *required(format=sa.Text),
        *default("", path=sa.Text),
        *optional(log_hash=sa.LargeBinary, extracted=sa.LargeBinary, maker=Id),
        *moments("started_at", "ended_at", "deleted_at", "made_until", nullable=True),
        *moments("updated_at", now=True),
        deleted_with("sources", source_id="source_id"),
        index("sessions_path_ix", "path", where="path <> ''"),
        index("sessions_started_ix", "started_at", "source_id"),
    )

    # `spoken` is what was said, where the memory's body is something else; `digest` tells whether the turn has changed.
    _table(
        "messages",
        *of_memory(),
        *required(role=sa.Text),
        *optional(spoken=sa.Text),
        *default("[]", tools=JSONB),
        *required(digest=sa.LargeBinary),
        sa.CheckConstraint("role IN ('user', 'assistant', 'tool', 'system')", name="role"),
    )

    _table(
        "artifacts",
        *of_workspace(artifact_id=Id),
        *required(path=sa.Text),
        *default("", symbol=sa.Text),
        sa.UniqueConstraint("workspace_id", "path", "symbol", name="artifacts_path_uq"),
    )

    _table(
        "artifact_touches",
        *keyed(artifact_id=Id, memory_id=Id, action=sa.Text),
        *default("", renamed_to=sa.Text),
        deleted_with("artifacts", artifact_id="artifact_id"),
        deleted_with("memories", memory_id="memory_id"),
        sa.CheckConstraint("action IN ('created', 'changed', 'deleted', 'renamed')", name="action"),
        index("artifact_touches_memory_ix", "memory_id"),
        index("artifact_touches_renamed_ix", "renamed_to", where="renamed_to <> ''"),
    )

    # What the agent did in a session: each act, with its places in the order of all acts.
    _table(
        "session_acts",
        *keyed(act=sa.Text, source_id=Id),
        *required(places=ARRAY(sa.Integer)),
        deleted_with("sources", source_id="source_id"),
        index("session_acts_source_ix", "source_id"),
    )


def add_cue_tables(_table: Callable[..., None]) -> None:
    """Adds the tables to the schema by its `_table`."""
    # A cue is a memory: its title is the trigger, its body the lesson. `vectors` holds those of its texts, as 16-bit
    # floats of the named model. `revision` is that of the workspace's cues when the row was written.
    _table(
        "cues",
        *of_memory(),
        *required(cue_kind=sa.Text),
        *default("{}", details=JSONB),
        *required(confidence=sa.REAL, consequence=sa.REAL, scope=sa.Text, quote=sa.Text, trust=sa.Text, origin=sa.Text),
        *required(
            state=sa.Text, action_types=ARRAY(sa.Text), files=ARRAY(sa.Text), seen_on=ARRAY(sa.Date), model=sa.Text
        ),
        *optional(vectors=sa.LargeBinary),
        *moments("valid_from"),
        *moments("valid_until", nullable=True),
        *optional(superseded_by=Id),
        *default("{}", disputed_by=ARRAY(Id), edited=ARRAY(sa.Text)),
        *default("0", fired=sa.Integer, heeded=sa.Integer, ignored=sa.Integer),
        *moments("last_fired_at", nullable=True),
        *required(revision=sa.BigInteger),
        *moments("updated_at", now=True),
        sa.CheckConstraint(
            "cue_kind IN ('correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery',"
            " 'negative_result')",
            name="cue_kind",
        ),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
        sa.CheckConstraint("consequence BETWEEN 0 AND 1", name="consequence"),
        sa.CheckConstraint("scope IN ('project', 'user')", name="scope"),
        sa.CheckConstraint("trust IN ('person', 'agent', 'imported', 'web')", name="trust"),
        sa.CheckConstraint("origin IN ('extracted', 'given', 'proposed')", name="origin"),
        sa.CheckConstraint("state IN ('active', 'proposed', 'retired', 'superseded')", name="state"),
        index("cues_revision_ix", "revision"),
        index("cues_mined_ix", "cue_kind", where="origin = 'proposed'"),
    )

    # No foreign keys to sources and turns: whoever deletes a session says so to the cues (`cues/store.py`).
    _table(
        "cue_evidence",
        *keyed(memory_id=Id, place=sa.SmallInteger),
        *optional(source_id=Id, turn_id=Id),
        *required(session=sa.Text),
        *optional(ordinal=sa.Integer),
        *required(quote=sa.Text),
        *moments("at", nullable=True),
        deleted_with("cues", memory_id="memory_id"),
        index("cue_evidence_source_ix", "source_id", where="source_id IS NOT NULL"),
    )

    # Writers of a workspace's cues count it up, one after the other, so that a reader can ask for what is newer.
    _table("cue_revisions", *of_workspace(), *required(revision=sa.BigInteger))

    _table(
        "action_types",
        *of_workspace(name=sa.Text),
        *required(examples=ARRAY(sa.Text)),
        *moments("updated_at", now=True),
    )

    _table(
        "activations",
        *of_workspace(activation_id=Id),
        *required(plan=sa.Text, files=ARRAY(sa.Text)),
        *optional(agent=sa.Text, run_id=sa.Text),
        *required(budget_tokens=sa.Integer, tokens=sa.Integer, degraded=sa.Text, took_ms=sa.REAL),
        *moments("settled_at", nullable=True),
        *moments("created_at", now=True),
        *of_user(),
        index("activations_run_ix", "run_id", where="run_id IS NOT NULL"),
        index("activations_user_ix", "user_id", where="user_id <> ''"),
    )

    # No foreign key to cues, as for `recall_hits`.
    _table(
        "activation_cues",
        *keyed(activation_id=Id, rank=sa.SmallInteger),
        *required(memory_id=Id, score=sa.REAL, explain=JSONB),
        *optional(outcome=sa.Text),
        sa.CheckConstraint("outcome IN ('heeded', 'ignored')", name="outcome"),
        deleted_with("activations", activation_id="activation_id"),
        index("activation_cues_memory_ix", "memory_id"),
    )

    # `before` holds what an undo needs; `key` is the same for the same change, so that it is proposed once.
    _table(
        "cue_proposals",
        *of_workspace(proposal_id=Id),
        *required(change=sa.Text, key=sa.Text, cue_ids=ARRAY(Id)),
        *optional(target_id=Id),
        *required(relation=sa.Text, reason=sa.Text),
        *default("open", state=sa.Text),
        *default("{}", before=JSONB),
        *moments("created_at", now=True),
        *moments("decided_at", nullable=True),
        *of_user(),
        sa.UniqueConstraint("workspace_id", "change", "key", name="cue_proposals_key_uq"),
        sa.CheckConstraint(
            "change IN ('merge', 'broaden', 'graduate', 'retire', 'stale', 'note', 'procedure')",
            name="change",
        ),
        sa.CheckConstraint("state IN ('open', 'accepted', 'declined', 'undone')", name="state"),
    )


def add_context_tables(_table: Callable[..., None]) -> None:
    """Adds the tables of contexts to the schema by its `_table`."""
    # `document` is the whole answer; JSONB would sort the keys of the tools' schemas. `prefix` identifies the
    # beginning that a prompt cache may reuse; the run's next context is compared with it.
    _table(
        "contexts",
        *of_workspace(context_id=Id),
        *optional(run_id=sa.Text, session=sa.Text, agent=sa.Text),
        *required(model=sa.Text, format=sa.Text, budget=sa.Integer, tokens=sa.Integer, prefix=sa.Text, document=JSON),
        *required(took_ms=sa.REAL),
        *moments("created_at", now=True),
        *of_user(),
        index("contexts_run_ix", "run_id", "context_id", where="run_id IS NOT NULL"),
        index("contexts_user_ix", "user_id", where="user_id <> ''"),
    )

    _table(
        "context_templates",
        *of_workspace(name=sa.Text),
        *required(content=sa.Text, label=sa.Text, mode=sa.Text, priority=sa.Text),
        *moments("updated_at", now=True),
        sa.CheckConstraint("mode IN ('hierarchical', 'constraint')", name="mode"),
        sa.CheckConstraint("priority IN ('critical', 'high', 'medium', 'low')", name="priority"),
    )


def add_item_table(_table: Callable[..., None]) -> None:
    """Adds the table of items to the schema by its `_table`."""
    # `namespace` has its labels with U+0001 after each, so that its order is theirs. JSONB would change large numbers
    # and the order of keys: `value` comes back as it was given. No foreign key to the memory of
    # an item's text: where a person destroys it, the item stays.
    exact = sa.Text(collation="C")
    _table(
        "items",
        *required(workspace_id=sa.BigInteger, namespace=exact, key=exact, value=JSON),
        *optional(memory_id=Id, ttl_minutes=sa.Double),
        *moments("created_at", "updated_at", now=True),
        *moments("expires_at", nullable=True),
        *of_user(),
        sa.PrimaryKeyConstraint("workspace_id", "user_id", "namespace", "key"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.workspace_id"]),
        index("items_created_ix", "user_id", "namespace", "created_at", "key"),
        index("items_expires_ix", "expires_at", where="expires_at IS NOT NULL"),
    )
