"""The states of issues in words, resolved instead of mended, and the advice of judgements for the next run.

An issue is resolved where a text says so; one that later versions only do not name is unnamed. Until a worker has
matched the judgements again, issues that were mended count as unnamed, which claims nothing. A worker also reads the
judgements of runs anew, because their tasks name the cases otherwise.

Locks: `judgements` and `issues` exclusively for a moment, because columns with a constant default are added and a check
is replaced. Every row of `judgements` and `issues` is written once.
"""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

STATEMENTS = """
UPDATE judgements j SET matched = false, issues = (
    SELECT coalesce(jsonb_agg(
        (item - '{old}') || jsonb_build_object('{new}', coalesce(item ->> '{old}', ''))
            || CASE WHEN item ->> 'status' = ANY(ARRAY{from_}) THEN jsonb_build_object('status', '{to}')
                ELSE jsonb_build_object() END
        ORDER BY place
    ), '[]') FROM jsonb_array_elements(j.issues) WITH ORDINALITY AS stated(item, place)
)
"""
OCCURRENCES = "UPDATE issue_occurrences SET status = '{to}' WHERE status = ANY(ARRAY{from_})"
EMPTIED = """
DELETE FROM issues i WHERE NOT EXISTS (
    SELECT 1 FROM judgements j WHERE j.workspace_id = i.workspace_id AND j.case_name = i.case_name
)
"""
# The version before writes `mended` until it is stopped.
CHECK = "ALTER TABLE issues ADD CONSTRAINT issues_status_ck CHECK (status IN ({statuses})) NOT VALID"


def upgrade() -> None:
    op.execute("ALTER TABLE judgements ADD COLUMN advice text NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE issues ADD COLUMN state text NOT NULL DEFAULT '', ALTER COLUMN mended_in SET DEFAULT ''")
    _check("'open', 'reopened', 'resolved', 'unnamed', 'mended'")
    op.execute("UPDATE issues SET status = 'unnamed' WHERE status = 'mended'")
    changes = {"from_": ["mended"], "to": "resolved"}
    op.execute(STATEMENTS.format(old="mended_in", new="since", **changes))
    op.execute(OCCURRENCES.format(**changes))
    op.execute("DELETE FROM judgements WHERE run_id IS NOT NULL")
    op.execute(EMPTIED)


def downgrade() -> None:
    changes = {"from_": ["resolved", "unnamed"], "to": "mended"}
    op.execute(OCCURRENCES.format(**changes))
    op.execute(STATEMENTS.format(old="since", new="mended_in", **changes))
    op.execute("UPDATE issues SET status = CASE WHEN status IN ('open', 'reopened') THEN 'open' ELSE 'mended' END")
    _check("'open', 'mended'")
    op.execute("ALTER TABLE issues DROP COLUMN state, ALTER COLUMN mended_in DROP DEFAULT")
    op.execute("ALTER TABLE judgements DROP COLUMN advice")


def _check(statuses: str) -> None:
    op.execute("ALTER TABLE issues DROP CONSTRAINT issues_status_ck")
    op.execute(CHECK.format(statuses=statuses))
    op.execute("ALTER TABLE issues VALIDATE CONSTRAINT issues_status_ck")
