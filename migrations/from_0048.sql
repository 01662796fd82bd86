-- What a store at 0048, the last schema of the development before 0.1.0, lacks of schema.sql, and has beyond it.

UPDATE alembic_version SET version_num = '0049';
COMMENT ON TABLE alembic_version IS '0049';

-- Granted one by one so far, as their functions came; the service may call all functions.
GRANT EXECUTE ON FUNCTION priors_spaced(text), priors_terms_by_script(regconfig, text), priors_phrase(regconfig, text)
    TO priors_service;

-- Quotas count memories, and keys are limited by requests.
DROP INDEX procrastinate_jobs_workspace_ix;
DROP FUNCTION priors_jobs(text[], bigint), priors_usage();
ALTER TABLE quotas DROP CONSTRAINT quotas_limits_ck, DROP COLUMN bytes, DROP COLUMN jobs, DROP COLUMN used_bytes,
    ADD CONSTRAINT quotas_limits_ck CHECK (memories >= 0);
ALTER TABLE api_keys DROP COLUMN bytes_per_minute;

-- Accesses are counted; there are no tiers, which nothing but a filter used.
DELETE FROM tiers WHERE access_count = 0;
DROP INDEX tiers_due_ix, tiers_tier_ix, tiers_run_ix;
ALTER TABLE tiers DROP COLUMN tier, DROP COLUMN pinned, DROP COLUMN visits, DROP COLUMN run_id, DROP COLUMN due_at;
ALTER TABLE tiers RENAME TO accesses;
ALTER TABLE accesses RENAME CONSTRAINT tiers_pk TO accesses_pk;
ALTER TABLE accesses RENAME CONSTRAINT tiers_memories_fk TO accesses_memories_fk;
ALTER TABLE accesses RENAME CONSTRAINT tiers_workspace_id_not_null TO accesses_workspace_id_not_null;
ALTER TABLE accesses RENAME CONSTRAINT tiers_memory_id_not_null TO accesses_memory_id_not_null;
ALTER TABLE accesses RENAME CONSTRAINT tiers_access_count_not_null TO accesses_access_count_not_null;
