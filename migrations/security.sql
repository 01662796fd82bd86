-- The roles of Priors, and who may do what: the service owns nothing, and a statement sees the rows of its session's
-- workspace alone. All of it may be repeated, and is where a dump was restored on a server without the roles.

-- The roles are cluster-wide and may not log in; another database of the server may use them too.
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
END $$;

DO $$ BEGIN
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO priors_owner', current_schema());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO priors_service', current_schema());
END $$;

-- A table that is made later, by a migration or at run time, gets its owner, policies and grants from this function;
-- until then the service may not touch it.
CREATE OR REPLACE FUNCTION priors_secure(target regclass) RETURNS void LANGUAGE plpgsql AS $_$
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
            USING (workspace_id = nullif(current_setting('priors.workspace_id', true), '')::bigint) WITH CHECK (workspace_id = nullif(current_setting('priors.workspace_id', true), '')::bigint)
        $policy$, target);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = target AND polname = 'all_workspaces') THEN
        EXECUTE format('CREATE POLICY all_workspaces ON %s TO priors_owner USING (true) WITH CHECK (true)', target);
    END IF;
END $_$;

-- Gives the tables of schema.sql, the partitions and all that the job queue has their owner and grants.
DO $$
DECLARE
    item record;
    ours constant regclass[] := (
        SELECT array_agg(c.oid::regclass ORDER BY c.oid) FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND (
            c.relname LIKE 'procrastinate\_%'
            OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = to_regclass('embeddings'))
            OR c.relname IN ('alembic_version',
            'workspaces', 'api_keys', 'audit', 'sources', 'memories', 'accesses', 'lexical',
            'embedding_models', 'embeddings', 'pending_embeddings', 'links', 'titles', 'pending_links',
            'lexeme_statistics', 'runs', 'judgements', 'issues', 'issue_occurrences', 'observations',
            'compressions', 'sessions', 'messages', 'artifacts', 'artifact_touches', 'cues', 'cue_evidence',
            'cue_revisions', 'session_acts', 'cue_proposals', 'activations', 'activation_cues',
            'contexts', 'feedback', 'ingestions', 'maps',
            'refusals', 'recalls', 'recall_hits', 'run_sections', 'effects'
            )
        )
    );
BEGIN
    FOR item IN SELECT unnest(ours) AS name LOOP
        PERFORM priors_secure(item.name);
    END LOOP;
    FOR item IN SELECT s.oid::regclass AS name FROM pg_class s
        JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid AND d.deptype IN ('a', 'i')
        WHERE s.relkind = 'S' AND d.refclassid = 'pg_class'::regclass AND d.refobjid = ANY(ours::oid[])
    LOOP
        EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO priors_service', item.name);
    END LOOP;
    FOR item IN SELECT oid::regprocedure AS name FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND proname ~ '^(priors|procrastinate)_'
    LOOP
        EXECUTE format('ALTER ROUTINE %s OWNER TO priors_owner', item.name);
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO priors_service', item.name);
    END LOOP;
    FOR item IN SELECT t.oid::regtype AS name FROM pg_type t
        WHERE t.typnamespace = current_schema()::regnamespace AND t.typname LIKE 'procrastinate\_%' AND (
            t.typtype = 'e' OR EXISTS (SELECT FROM pg_class r WHERE r.oid = t.typrelid AND r.relkind = 'c')
        )
    LOOP
        EXECUTE format('ALTER TYPE %s OWNER TO priors_owner', item.name);
    END LOOP;
    -- A session of the service sees the rows of the users that it names (docs/adr/0029).
    FOR item IN SELECT a.attrelid::regclass AS name FROM pg_attribute a
        WHERE a.attrelid = ANY(ours::oid[]) AND a.attname = 'user_id' AND NOT a.attisdropped
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS own_user ON %s', item.name);
        EXECUTE format($policy$
            CREATE POLICY own_user ON %s AS RESTRICTIVE TO priors_service USING (
                user_id = '' AND coalesce(current_setting('priors.sees', true), '') <> 'own'
                OR user_id = coalesce(current_setting('priors.user', true), '')
                OR coalesce(current_setting('priors.sees', true), '') = ''
            )
        $policy$, item.name);
    END LOOP;
END $$;

-- The functions that look up as the owner what a policy would make slow, or what the service may not read.
DO $$
DECLARE
    item record;
    path constant text := (
        SELECT string_agg(quote_ident(nspname), ', ' ORDER BY nspname <> current_schema()) || ', pg_temp'
        FROM pg_namespace WHERE oid IN (
            current_schema()::regnamespace, (SELECT extnamespace FROM pg_extension WHERE extname = 'vector')
        )
    );
BEGIN
    FOR item IN SELECT oid::regprocedure AS name FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND proname IN (
            'priors_workspace', 'priors_make_workspace', 'priors_lexical', 'priors_matching', 'priors_tagged',
            'priors_of_task', 'priors_add_model', 'priors_merge_pending', 'priors_key', 'priors_keys_exist'
        )
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER', item.name);
        EXECUTE format('ALTER FUNCTION %s SET search_path = %s', item.name, path);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', item.name);
    END LOOP;
END $$;

-- The service reads the revision and does not set it, finds one key by its digest and cannot list them, and adds to the
-- log and does not change it.
REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM priors_service;
REVOKE ALL ON api_keys FROM priors_service;
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
REVOKE UPDATE, DELETE, TRUNCATE ON audit FROM priors_service;
