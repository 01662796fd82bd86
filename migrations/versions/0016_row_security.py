"""Row-level security: the service owns nothing, and a statement sees the rows of its session's workspace alone.

Makes the roles `priors_owner` and `priors_service` (cluster-wide, no login) where they are missing, gives every
object of the schema to the first, and grants the second what the service needs. Going down leaves the roles: another
database of the server may use them.

The whole is repeatable: `alembic upgrade head` repeats it where a dump was restored on a server without the roles.

Locks: every table, exclusively, for the time of a change in the catalogue; no row is read or written.
"""

from collections.abc import Iterable, Iterator

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TABLES = (
    "alembic_version",
    *("workspaces", "sources", "memories", "lexical", "lexeme_statistics", "embedding_models", "embeddings"),
    *("pending_embeddings", "recalls", "recall_hits", "run_sections", "runs", "observations", "compressions"),
    *("feedback", "ingestions", "refusals", "graph_layouts", "graph_points", "links", "titles", "pending_links"),
)


def ours(tables: Iterable[str]) -> str:
    """Returns the condition by which `pg_class c` names one of these tables, a partition, or a table of the jobs."""
    return f"""
    c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND (
        c.relname IN ({", ".join(f"'{name}'" for name in tables)}) OR c.relname LIKE 'procrastinate\\_%'
        OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = to_regclass('embeddings'))
    )
"""


THEIR_ROUTINES = r"pronamespace = current_schema()::regnamespace AND proname ~ '^(priors|procrastinate)_'"
THEIR_TYPES = r"""
    t.typnamespace = current_schema()::regnamespace AND t.typname LIKE 'procrastinate\_%' AND (
        t.typtype = 'e' OR EXISTS (SELECT FROM pg_class r WHERE r.oid = t.typrelid AND r.relkind = 'c')
    )
"""

WORKSPACE = "nullif(current_setting('priors.workspace_id', true), '')::bigint"
"""The session's workspace; NULL, which equals nothing, where it has none."""

ROLES = """
DO $$
DECLARE
    role text;
    missing constant text := coalesce((
        SELECT string_agg(format('CREATE ROLE %I NOLOGIN; ', wanted), '' ORDER BY wanted)
        FROM unnest(ARRAY['priors_owner', 'priors_service']) AS wanted WHERE to_regrole(wanted) IS NULL
    ), '');
BEGIN
    FOREACH role IN ARRAY ARRAY['priors_owner', 'priors_service'] LOOP
        IF to_regrole(role) IS NULL THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL; -- another database of this server was migrated at the same moment
            END;
        END IF;
        IF NOT (pg_has_role(session_user, role, 'SET') AND pg_has_role(session_user, role, 'USAGE')) THEN
            BEGIN
                EXECUTE format('GRANT %I TO %I WITH INHERIT TRUE, SET TRUE', role, session_user);
            EXCEPTION WHEN unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the role % may not make or take the roles of Priors; an administrator must run: %', session_user,
        missing || format('GRANT priors_owner, priors_service TO %I WITH INHERIT TRUE, SET TRUE;', session_user)
        USING ERRCODE = 'insufficient_privilege';
END $$
"""

SCHEMA_GRANTS = """
DO $$ BEGIN
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO priors_owner', current_schema());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO priors_service', current_schema());
END $$
"""

# A table that is made later, by a migration or at run time, gets its owner, policies and grants from this function;
# until then the service may not touch it.
SECURE = f"""
CREATE OR REPLACE FUNCTION priors_secure(target regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT relowner FROM pg_class WHERE oid = target) <> 'priors_owner'::regrole THEN
        EXECUTE format('ALTER TABLE %s OWNER TO priors_owner', target);
    END IF;
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO priors_service', target);
    IF NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = target AND attname = 'workspace_id' AND NOT attisdropped
    ) THEN
        RETURN;
    END IF;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = target AND polname = 'own_workspace') THEN
        EXECUTE format($policy$
            CREATE POLICY own_workspace ON %s
            USING (workspace_id = {WORKSPACE}) WITH CHECK (workspace_id = {WORKSPACE})
        $policy$, target);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = target AND polname = 'all_workspaces') THEN
        EXECUTE format('CREATE POLICY all_workspaces ON %s TO priors_owner USING (true) WITH CHECK (true)', target);
    END IF;
END $$
"""  # noqa: S608 - constants


def secure_all(tables: Iterable[str]) -> str:
    """Returns the statement that gives these tables and all other objects of the schema their owner and grants."""
    return f"""
DO $$
DECLARE item record;
BEGIN
    FOR item IN SELECT c.oid::regclass AS name FROM pg_class c WHERE {ours(tables)} ORDER BY c.oid LOOP
        PERFORM priors_secure(item.name);
    END LOOP;
    REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM priors_service;
    FOR item IN SELECT s.oid::regclass AS name FROM pg_class s
        JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.deptype IN ('a', 'i')
        JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
        WHERE s.relkind = 'S' AND {ours(tables)}
    LOOP
        EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO priors_service', item.name);
    END LOOP;
    FOR item IN SELECT oid::regprocedure AS name FROM pg_proc WHERE {THEIR_ROUTINES} LOOP
        EXECUTE format('ALTER ROUTINE %s OWNER TO priors_owner', item.name);
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO priors_service', item.name);
    END LOOP;
    FOR item IN SELECT t.oid::regtype AS name FROM pg_type t WHERE {THEIR_TYPES} LOOP
        EXECUTE format('ALTER TYPE %s OWNER TO priors_owner', item.name);
    END LOOP;
END $$
"""  # noqa: S608 - constants


# What is not leakproof, as text search's `@@` is not, would be evaluated after the policy, on every row of the
# workspace. These functions look it up in the index, as the owner, and take the workspace from the session themselves.
# PL/pgSQL keeps its plan for the session, which a function in SQL does from Postgres 18 on only.
DEFINERS = {
    "priors_workspace(text)": """
CREATE FUNCTION priors_workspace(wanted text) RETURNS SETOF workspaces LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT * FROM workspaces w WHERE w.name = wanted;
END $$
""",
    "priors_make_workspace(text, text)": """
CREATE FUNCTION priors_make_workspace(wanted text, spoken text) RETURNS SETOF workspaces LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    INSERT INTO workspaces (name, language, languages) VALUES (wanted, spoken, ARRAY[spoken])
    ON CONFLICT (name) DO NOTHING;
    RETURN QUERY SELECT * FROM workspaces w WHERE w.name = wanted;
END $$
""",
    # Without a limit they come in no order: a filter is still to be applied, and the caller sorts what it leaves.
    "priors_lexical(tsquery, sparsevec, integer)": f"""
CREATE FUNCTION priors_lexical(match tsquery, query sparsevec, most integer)
RETURNS TABLE (memory_id uuid, bm25 float8) LANGUAGE plpgsql STABLE ROWS 60 AS $$
DECLARE own constant bigint := {WORKSPACE};
DECLARE own_match constant tsquery := quote_literal('workspace:' || own)::tsquery && match;
BEGIN
    IF most IS NULL THEN
        RETURN QUERY SELECT l.memory_id, -(l.weights <#> query) FROM lexical l
            WHERE l.workspace_id = own AND l.terms @@ own_match;
    ELSE
        RETURN QUERY SELECT scored.memory_id, -scored.score FROM (
            SELECT l.memory_id, l.weights <#> query AS score FROM lexical l
            WHERE l.workspace_id = own AND l.terms @@ own_match OFFSET 0
        ) AS scored WHERE scored.score < 0 ORDER BY scored.score, scored.memory_id LIMIT most;
    END IF;
END $$
""",  # noqa: S608 - constants
    "priors_matching(tsquery, integer)": f"""
CREATE FUNCTION priors_matching(match tsquery, most integer) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE own constant bigint := {WORKSPACE};
BEGIN
    RETURN QUERY SELECT l.memory_id FROM lexical l
        WHERE l.workspace_id = own AND l.terms @@ (quote_literal('workspace:' || own)::tsquery && match) LIMIT most;
END $$
""",  # noqa: S608 - constants
    "priors_tagged(text[], integer)": f"""
CREATE FUNCTION priors_tagged(wanted text[], most integer) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 200 AS $$
DECLARE own constant bigint := {WORKSPACE};
BEGIN
    RETURN QUERY SELECT m.memory_id FROM memories m
        WHERE m.workspace_id = own AND m.valid_until IS NULL AND m.tags @> wanted LIMIT most;
END $$
""",  # noqa: S608 - constants
    "priors_of_task(text)": f"""
CREATE FUNCTION priors_of_task(wanted text) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 5 AS $$
DECLARE own constant bigint := {WORKSPACE};
BEGIN
    RETURN QUERY SELECT o.memory_id FROM observations o
        WHERE o.workspace_id = own AND md5(o.task) = md5(wanted) AND o.task = wanted;
END $$
""",  # noqa: S608 - constants
    # The first model is registered by whoever embeds first, in whichever workspace.
    "priors_add_model(text, integer, boolean)": """
CREATE FUNCTION priors_add_model(wanted text, numbers integer, served boolean) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    made smallint;
    home constant regnamespace := (SELECT relnamespace FROM pg_class WHERE oid = 'embeddings'::regclass);
BEGIN
    INSERT INTO embedding_models (name, dimension, active) VALUES (wanted, numbers, served)
    RETURNING model_id INTO made;
    EXECUTE format('CREATE TABLE %s.embeddings_%s PARTITION OF embeddings FOR VALUES IN (%s)', home, made, made);
    PERFORM priors_secure(format('%s.embeddings_%s', home, made)::regclass);
    IF served THEN
        INSERT INTO pending_embeddings (workspace_id, memory_id) SELECT workspace_id, memory_id FROM lexical
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN made;
END $$
""",
    "priors_merge_pending()": """
CREATE FUNCTION priors_merge_pending() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN gin_clean_pending_list('lexical_terms_ix'::regclass);
END $$
""",
}

DEFINE = """
DO $$
DECLARE path text := (
    SELECT string_agg(quote_ident(nspname), ', ' ORDER BY nspname <> current_schema()) || ', pg_temp' FROM pg_namespace
    WHERE oid IN (current_schema()::regnamespace, (SELECT extnamespace FROM pg_extension WHERE extname = 'vector'))
);
BEGIN
    EXECUTE 'ALTER FUNCTION {function} SECURITY DEFINER';
    EXECUTE 'ALTER FUNCTION {function} SET search_path = ' || path;
    EXECUTE 'REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC';
END $$
"""

# Adds a job unless one with its lock is waiting, in one round trip and without a savepoint of the caller's.
ENQUEUE = """
CREATE FUNCTION priors_enqueue(
    task text, priority integer, alone text, job_lock text, arguments jsonb, after_seconds float8
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        'default', task, priority, alone, job_lock, arguments,
        CASE WHEN after_seconds > 0 THEN now() + make_interval(secs => after_seconds) END
    )::procrastinate_job_to_defer_v1]);
EXCEPTION WHEN unique_violation THEN
    NULL;
END $$
"""

GIVE_BACK = f"""
DO $$
DECLARE item record;
BEGIN
    FOR item IN SELECT c.oid::regclass AS name FROM pg_class c WHERE {ours(TABLES)} ORDER BY c.oid LOOP
        EXECUTE format('DROP POLICY IF EXISTS own_workspace ON %s', item.name);
        EXECUTE format('DROP POLICY IF EXISTS all_workspaces ON %s', item.name);
        EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', item.name);
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', item.name);
    END LOOP;
    EXECUTE format('REASSIGN OWNED BY priors_owner TO %I', session_user);
    -- What they were granted in this database.
    EXECUTE 'DROP OWNED BY priors_service';
    EXECUTE 'DROP OWNED BY priors_owner';
END $$
"""  # noqa: S608 - constants


def repeated(tables: Iterable[str]) -> Iterator[str]:
    """Yields the statements that secure a database again, which may lack all that names a role."""
    yield from (ROLES, SCHEMA_GRANTS, SECURE, secure_all(tables))
    yield from (DEFINE.format(function=function) for function in DEFINERS)


def upgrade() -> None:
    op.execute(ROLES)
    op.execute(SCHEMA_GRANTS)
    op.execute(SECURE)
    op.execute(ENQUEUE)
    for function, statement in DEFINERS.items():
        op.execute(statement)
        op.execute(DEFINE.format(function=function))
    op.execute(secure_all(TABLES))


def downgrade() -> None:
    for function in DEFINERS:
        op.execute(f"DROP FUNCTION {function}")
    op.execute("DROP FUNCTION priors_enqueue(text, integer, text, text, jsonb, float8)")
    op.execute("DROP FUNCTION priors_secure(regclass)")
    op.execute(GIVE_BACK)
