"""Triggers write the audit log; the hashes of rows before and after a change go.

Locks: the audited tables, each for a moment, and `audit`.
"""

from alembic import op

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None

breaks = "it writes hashes of rows into the audit log, and fails"
AUDIT = r"""
-- A shard's name ends in its number: the entry goes to the shard of the log beside it, in the same transaction. What a
-- foreign key deletes along has no entry. The id is a UUID of version 7, so that ids sort by time.
CREATE FUNCTION priors_audit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    object constant text := TG_ARGV[0];
    key constant text := TG_ARGV[1];
    marks constant text[] := TG_ARGV[2];
    workspace constant text := TG_ARGV[3];
    of_workers constant boolean := TG_ARGV[4];
    identity constant text := TG_ARGV[5];
    acting constant jsonb := coalesce(nullif(current_setting('priors.actor', true), ''), '{"who": "service"}')::jsonb;
    shard constant text := substring(TG_TABLE_NAME FROM '_(\d+)$');
    log text := 'audit';
    changed text := CASE TG_OP WHEN 'DELETE' THEN 'stale' ELSE 'fresh' END;
    entry record;
BEGIN
    IF pg_trigger_depth() > 1 OR coalesce(current_setting('priors.audit', true), '') = 'off'
        OR of_workers AND acting ->> 'who' = 'worker'
    THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        changed := format(
            '(SELECT f.* FROM fresh f JOIN stale s USING (%s) WHERE to_jsonb(f) - %L::text[] <> to_jsonb(s) - %2$L::text[])',
            identity, marks
        );
    END IF;
    IF shard IS NOT NULL THEN
        SELECT format('audit_%s', a.shardid) INTO STRICT log FROM pg_dist_shard s
        JOIN pg_dist_shard a ON a.shardminvalue = s.shardminvalue AND a.logicalrelid = 'audit'::regclass
        WHERE s.shardid = shard::bigint;
    END IF;
    FOR entry IN EXECUTE format(
        $query$
        SELECT workspace, count(*) AS count, array_agg(DISTINCT id COLLATE "C" ORDER BY id COLLATE "C") AS ids
        FROM (SELECT %s AS workspace, concat_ws('/', %s) AS id FROM %s AS changed) AS named GROUP BY workspace
        $query$,
        coalesce(nullif(workspace, ''), '-1::bigint'), key, changed
    ) LOOP
        EXECUTE format(
            $query$
            INSERT INTO %I (workspace_id, entry_id, who, operation, request_id, key_id, for_user, action, object, count,
                ids, ids_hash)
            VALUES ($1, encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(
                int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1),
                'hex')::uuid, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $9 <= 10000 THEN $10 ELSE '{}' END,
                sha256(convert_to(array_to_string($10, E'\n'), 'UTF8')))
            $query$, log
        ) USING entry.workspace, acting ->> 'who', coalesce(acting ->> 'operation', ''),
            coalesce(acting ->> 'request_id', ''), (acting ->> 'key_id')::uuid,
            coalesce(current_setting('priors.user', true), ''),
            CASE TG_OP WHEN 'INSERT' THEN 'add' WHEN 'UPDATE' THEN 'change' ELSE 'remove' END, object, entry.count,
            entry.ids;
    END LOOP;
    RETURN NULL;
END $$;
"""  # noqa: E501 - as schema.sql has it
TRIGGERS = """
-- What is logged of each table: the name of an object, the columns that name one, those that count or mark, its
-- workspace, whether what a worker finds is left out, and whether only removals are logged, because it logs reads. The
-- rows before and after a change are joined by the primary key.
DO $$
DECLARE
    item record;
    event record;
BEGIN
    PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
    FOR item IN SELECT * FROM (VALUES
        ('api_keys', 'key', 'key_id', 'last_used_at', '', false, false),
        ('memories', 'memory', 'memory_id', 'uses', 'workspace_id', false, false),
        ('observations', 'observation', 'memory_id', '', 'workspace_id', false, false),
        ('sources', 'source', 'source_id', 'updated_at', 'workspace_id', false, false),
        ('sessions', 'session', 'source_id', 'log_hash,maker,made_until,extracted', 'workspace_id', false, false),
        ('runs', 'run', 'run_id', 'updated_at', 'workspace_id', false, false),
        ('feedback', 'rating', 'feedback_id', '', 'workspace_id', false, false),
        ('cues', 'cue', 'memory_id', 'fired,last_fired_at,model,vectors,revision,updated_at', 'workspace_id', false,
            false),
        ('cue_proposals', 'proposal', 'proposal_id', '', 'workspace_id', false, false),
        ('links', 'link', 'from_id,to_id', '', 'workspace_id', true, false),
        ('recalls', 'recall', 'recall_id', '', 'workspace_id', false, true),
        ('activations', 'activation', 'activation_id', '', 'workspace_id', false, true),
        ('contexts', 'context', 'context_id', '', 'workspace_id', false, true)
    ) AS audited (name, object, key, marks, workspace, of_workers, of_reads) LOOP
        FOR event IN SELECT * FROM (VALUES
            ('audit_remove', 'DELETE', 'OLD TABLE AS stale'),
            ('audit_add', 'INSERT', 'NEW TABLE AS fresh'),
            ('audit_change', 'UPDATE', 'OLD TABLE AS stale NEW TABLE AS fresh')
        ) AS events (name, verb, rows) LOOP
            CONTINUE WHEN item.of_reads AND event.verb <> 'DELETE';
            EXECUTE format(
                'CREATE TRIGGER %I AFTER %s ON %I REFERENCING %s FOR EACH STATEMENT EXECUTE FUNCTION'
                ' priors_audit(%L, %L, %L, %L, %L, %L)', event.name, event.verb, item.name, event.rows,
                item.object, item.key, '{' || item.marks || '}', item.workspace, item.of_workers, (
                    SELECT string_agg(a.attname, ',' ORDER BY a.attname) FROM pg_index i
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
                    WHERE i.indrelid = item.name::regclass AND i.indisprimary
                )
            );
        END LOOP;
    END LOOP;
END $$;
"""
OWN = (
    "ALTER FUNCTION priors_audit() OWNER TO priors_owner",
    "GRANT EXECUTE ON FUNCTION priors_audit() TO priors_service",
)


def upgrade() -> None:
    op.execute("ALTER TABLE audit DROP COLUMN before, DROP COLUMN after")
    op.execute(AUDIT)
    for statement in OWN:
        op.execute(statement)
    op.execute(TRIGGERS)


def downgrade() -> None:
    op.execute("DROP FUNCTION priors_audit() CASCADE")
    op.execute("ALTER TABLE audit ADD COLUMN before bytea, ADD COLUMN after bytea")
