"""Functions for statements that a cluster sends to one node whole, and the tags' index for the service again.

A statement of a distributed table may not read the catalogue beside it. And 0029, which replaced `priors_tagged`, lost
that it runs as the owner: a filter by tags read every memory of the workspace.

Locks: none.
"""

from alembic import context, op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

IS_INDEXED = """
CREATE FUNCTION priors_is_indexed(model smallint, workspace bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pg_index WHERE indisvalid
        AND indexrelid = to_regclass('embeddings_' || model || '_' || workspace || '_hnsw')
    );
END $$
"""


def upgrade() -> None:
    op.execute(IS_INDEXED)
    op.execute("ALTER FUNCTION priors_is_indexed(smallint, bigint) OWNER TO priors_owner")
    op.execute("GRANT EXECUTE ON FUNCTION priors_is_indexed(smallint, bigint) TO priors_service")
    security = context.script.get_revision("0016")
    assert security is not None, "it stands before"  # noqa: S101
    op.execute(security.module.DEFINE.format(function="priors_tagged(text[], integer)"))


def downgrade() -> None:
    op.execute("DROP FUNCTION priors_is_indexed(smallint, bigint)")
    op.execute("ALTER FUNCTION priors_tagged(text[], integer) SECURITY INVOKER")
    op.execute("ALTER FUNCTION priors_tagged(text[], integer) RESET ALL")
