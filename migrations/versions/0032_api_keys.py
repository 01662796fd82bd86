"""API keys, each with its scopes, workspaces and life.

The keys belong to no workspace. Row-level security without a policy hides them from the service's role, which finds one
key by the digest of its secret and cannot list them. The owner manages them.

Locks: none that matters, the table is new.
"""

from collections.abc import Iterator

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE api_keys (
    key_id uuid NOT NULL, digest bytea NOT NULL, name text NOT NULL, scopes text[] NOT NULL, workspaces text[],
    created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz, revoked_at timestamptz,
    last_used_at timestamptz, replaces uuid,
    CONSTRAINT api_keys_pk PRIMARY KEY (key_id),
    CONSTRAINT api_keys_digest_uq UNIQUE (digest),
    CONSTRAINT api_keys_digest_ck CHECK (octet_length(digest) = 32),
    CONSTRAINT api_keys_scopes_ck CHECK (scopes <> '{}' AND scopes <@ ARRAY['read', 'write', 'rate', 'admin']),
    CONSTRAINT api_keys_workspaces_ck CHECK (workspaces <> '{}')
)
"""
# The time of a use is written once a minute at most, so that a busy key costs no write a request.
FUNCTIONS = {
    "priors_key(bytea)": """
CREATE FUNCTION priors_key(wanted bytea) RETURNS SETOF api_keys LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    UPDATE api_keys SET last_used_at = now() WHERE digest = wanted AND revoked_at IS NULL
        AND coalesce(expires_at > now(), true) AND coalesce(last_used_at < now() - interval '1 minute', true);
    RETURN QUERY SELECT * FROM api_keys k WHERE k.digest = wanted AND k.revoked_at IS NULL
        AND coalesce(k.expires_at > now(), true);
END $$
""",
    "priors_keys_exist()": """
CREATE FUNCTION priors_keys_exist() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM api_keys WHERE revoked_at IS NULL);
END $$
""",
}
DEFINE = """
DO $$
DECLARE path text := (SELECT quote_ident(current_schema()) || ', pg_temp');
BEGIN
    EXECUTE 'ALTER FUNCTION {function} OWNER TO priors_owner';
    EXECUTE 'ALTER FUNCTION {function} SECURITY DEFINER';
    EXECUTE 'ALTER FUNCTION {function} SET search_path = ' || path;
    EXECUTE 'REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC';
    EXECUTE 'GRANT EXECUTE ON FUNCTION {function} TO priors_service';
END $$
"""


def secured() -> Iterator[str]:
    """Yields the statements that hide the keys from the service; they may be repeated."""
    yield "SELECT priors_secure('api_keys')"
    yield "REVOKE ALL ON api_keys FROM priors_service"
    yield "ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY"
    for function in FUNCTIONS:
        yield DEFINE.format(function=function)


def upgrade() -> None:
    for statement in (TABLE, *FUNCTIONS.values(), *secured()):
        op.execute(statement)


def downgrade() -> None:
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DROP TABLE api_keys")
