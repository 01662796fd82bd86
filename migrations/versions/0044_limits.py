"""Limits of API keys, and quotas of workspaces with what is used of them.

A key without limits of its own has those of the settings, as a workspace without quotas has.

Locks: `api_keys` exclusively for a moment, because columns without a default are added; the jobs' table against writers
while its index is built, which takes a second a million unfinished jobs.
"""

from collections.abc import Iterator

from alembic import context, op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

KEY_COLUMNS = ("requests_per_minute", "bytes_per_minute")
TABLE = """
CREATE TABLE quotas (
    workspace_id bigint NOT NULL, memories bigint, bytes bigint, jobs bigint,
    used_memories bigint NOT NULL DEFAULT 0, used_bytes bigint NOT NULL DEFAULT 0, counted_at timestamptz,
    CONSTRAINT quotas_pk PRIMARY KEY (workspace_id),
    CONSTRAINT quotas_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces (workspace_id),
    CONSTRAINT quotas_limits_ck CHECK (least(memories, bytes, jobs) >= 0)
)
"""
INDEX = """
CREATE INDEX procrastinate_jobs_workspace_ix ON procrastinate_jobs ((args ->> 'workspace_id'))
WHERE status IN ('todo', 'doing')
"""
# Of all users: those whose rows a session does not see count too.
FUNCTIONS = {
    "priors_usage()": """
CREATE FUNCTION priors_usage() RETURNS TABLE (memories bigint, bytes bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE own constant bigint := nullif(current_setting('priors.workspace_id', true), '')::bigint;
BEGIN
    RETURN QUERY SELECT count(*), coalesce(sum(octet_length(m.title) + octet_length(m.body)), 0)::bigint
    FROM memories m WHERE m.workspace_id = own AND m.valid_until IS NULL;
END $$
""",
    "priors_jobs(text[], bigint)": """
CREATE FUNCTION priors_jobs(tasks text[], most bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM (
        SELECT FROM procrastinate_jobs WHERE args ->> 'workspace_id' = current_setting('priors.workspace_id', true)
            AND status IN ('todo', 'doing') AND task_name = ANY(tasks) LIMIT most
    ) AS unfinished);
END $$
""",
}


def secured() -> Iterator[str]:
    """Yields the statements by which the service counts what its own workspace has; they may be repeated."""
    yield "SELECT priors_secure('quotas')"
    keys = context.script.get_revision("0032")
    assert keys is not None, "it stands before"  # noqa: S101
    for function in FUNCTIONS:
        yield keys.module.DEFINE.format(function=function)


def upgrade() -> None:
    for name in KEY_COLUMNS:
        op.execute(f"ALTER TABLE api_keys ADD COLUMN {name} bigint CONSTRAINT api_keys_{name}_ck CHECK ({name} >= 0)")
    for statement in (TABLE, INDEX, *FUNCTIONS.values(), *secured()):
        op.execute(statement)


def downgrade() -> None:
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DROP INDEX procrastinate_jobs_workspace_ix")
    op.execute("DROP TABLE quotas")
    for name in KEY_COLUMNS:
        op.execute(f"ALTER TABLE api_keys DROP COLUMN {name}")
