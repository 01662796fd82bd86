-- The schema of Priors, whole: the words, the tables, the functions. security.sql gives it its owner, grants and policies.
--
-- `workspace_id` leads every key. A memory can be retrieved if and only if it stands in `lexical`. The tables stand in the
-- order of their foreign keys; app/foundation/db/migrations.py reads their names, columns and keys from here, so a column
-- stands on a line of its own, and so do a key and what it refers to.

CREATE EXTENSION IF NOT EXISTS vector;

-- The dimension of a lexeme in a sparsevec.
CREATE FUNCTION priors_dimension(lexeme text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN 1 + (hashtextextended(lexeme, 0) & 536870911)::integer;

-- The part of BM25 that depends on the document alone: a term's frequency, saturated by k1 and normalised by length. The
-- query brings the idf, so that their inner product is the BM25 score. A sparsevec holds at most 16,000 terms.
CREATE FUNCTION priors_weights(terms tsvector, mean_length float8, k1 float8, b float8) RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (
    WITH counted AS (
        SELECT priors_dimension(lexeme) AS dimension, sum(coalesce(array_length(positions, 1), 1)) AS frequency
        FROM unnest(terms) GROUP BY 1
    ), document AS (
        SELECT k1 * (1 - b + b * sum(frequency) / greatest(mean_length, 1)) AS damping FROM counted
    ), kept AS (
        SELECT dimension, frequency * (k1 + 1) / (frequency + damping) AS weight
        FROM counted, document ORDER BY frequency DESC, dimension LIMIT 16000
    )
    SELECT (
        '{' || coalesce(string_agg(dimension || ':' || weight::real, ',' ORDER BY dimension), '') || '}/536870912'
    )::sparsevec FROM kept
);

-- The number of words of a text.
CREATE FUNCTION priors_length(terms tsvector) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (SELECT coalesce(sum(coalesce(array_length(positions, 1), 1)), 0)::integer FROM unnest(terms));

-- Sets blanks into scripts that have none: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean (whose particles stick to
-- their words). Postgres takes a run of such characters for one word. Overlapping pairs need no dictionary. At most 1 MB
-- fits into a tsvector, so the characters after the 30,000th are left as they are. The lengths tell an ASCII text.
CREATE FUNCTION priors_spaced(content text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN translate(CASE WHEN octet_length(content) > length(content) AND content ~ '[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]' THEN regexp_replace(
    regexp_replace(left(content, 30000), '([\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+)', ' \1 ', 'g'),
    '(?<=[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])([\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])(?=[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])', '\1 \1', 'g'
) || substr(content, 30001) ELSE content END, '/\ёЁ', '  еЕ');

-- A text as it is compared: what looks the same is the same (NFKC), without soft hyphens, zero-width characters and marks
-- of direction; a hyphen that does not break is a hyphen, and a blank between groups of digits that does not break is none.
-- A trade mark ends a word. The lengths tell an ASCII text, which is as it is.
CREATE FUNCTION priors_folded(content text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE WHEN octet_length(content) > length(content) THEN translate(normalize(translate(
    regexp_replace(content, '(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))', '', 'g'),
    E'\u2122\u2120\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff', '  '
), NFKC), E'\u2010\u2011', '--') ELSE content END;

-- Words of a script that the text's language does not write are stemmed as the language that writes it. Both
-- configurations read the text whole, with one parser, so that every word keeps its position.
CREATE FUNCTION priors_terms_by_script(language regconfig, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    found tsvector := to_tsvector(language, content);
    script record;
BEGIN
    FOR script IN
        SELECT configuration::regconfig, letters FROM (VALUES ('russian', '[\u0400-\u052f]', '{russian,serbian}'), ('greek', '[\u0370-\u03ff\u1f00-\u1fff]', '{greek}'), ('arabic', '[\u0600-\u06ff\u0750-\u077f]', '{arabic}'), ('armenian', '[\u0531-\u058f]', '{armenian}'), ('hindi', '[\u0900-\u097f]', '{hindi,nepali}'), ('tamil', '[\u0b80-\u0bff]', '{tamil}')) AS s(configuration, letters, own)
        WHERE language <> ALL(own::regconfig[]) AND content ~ letters
    LOOP
        SELECT coalesce(string_agg(quote_literal(lexeme) || ':' || array_to_string(positions, ','), ' '), '')::tsvector
        INTO found FROM (
            SELECT lexeme, positions FROM unnest(found) WHERE lexeme !~ script.letters
            UNION ALL
            SELECT lexeme, positions FROM unnest(to_tsvector(script.configuration, content))
            WHERE lexeme ~ script.letters
        ) AS word;
    END LOOP;
    RETURN found;
END $$;

-- The words of a text.
CREATE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE
    WHEN octet_length(content) > length(content) AND language <> 'simple'::regconfig AND content ~ '[\u0400-\u052f\u0370-\u03ff\u1f00-\u1fff\u0600-\u06ff\u0750-\u077f\u0531-\u058f\u0900-\u097f\u0b80-\u0bff]'
    THEN priors_terms_by_script(language, priors_spaced(priors_folded(content)))
    ELSE to_tsvector(language, priors_spaced(priors_folded(content))) END;

-- The query for a phrase, from the same words.
CREATE FUNCTION priors_phrase(language regconfig, content text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (
    SELECT string_agg(coalesce(' <' || step || '> ', '') || quote_literal(lexeme), '' ORDER BY place)::tsquery FROM (
        SELECT lexeme, place, place - lag(place) OVER (ORDER BY place) AS step
        FROM unnest(priors_terms(language, content)) AS word, unnest(positions) AS place
    ) AS words
);

-- One row: a tenant, with the languages of its memories and the mean length of its texts.
CREATE TABLE workspaces (
    workspace_id bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    language text NOT NULL,
    languages text[] NOT NULL,
    document_count bigint NOT NULL DEFAULT '0',
    mean_length real NOT NULL DEFAULT '0',
    statistics_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    roles jsonb NOT NULL DEFAULT '{}',
    has_users boolean NOT NULL DEFAULT false,
    uses_effects boolean NOT NULL DEFAULT false,
    action_types jsonb NOT NULL DEFAULT '{}',
    effects_ledger text,
    effects_at timestamptz,
    CONSTRAINT workspaces_pk PRIMARY KEY (workspace_id),
    CONSTRAINT workspaces_name_uq UNIQUE (name)
);

-- One row: the hash of a secret, with its scopes, workspaces and life; belongs to no workspace.
CREATE TABLE api_keys (
    key_id uuid NOT NULL,
    digest bytea NOT NULL,
    name text NOT NULL,
    scopes text[] NOT NULL,
    workspaces text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    replaces uuid,
    requests_per_minute bigint,
    CONSTRAINT api_keys_pk PRIMARY KEY (key_id),
    CONSTRAINT api_keys_digest_uq UNIQUE (digest),
    CONSTRAINT api_keys_digest_ck CHECK (octet_length(digest) = 32),
    CONSTRAINT api_keys_requests_per_minute_ck CHECK (requests_per_minute >= 0),
    CONSTRAINT api_keys_scopes_ck CHECK (scopes <> '{}' AND (scopes <@ ARRAY['read', 'write', 'rate', 'admin'])),
    CONSTRAINT api_keys_workspaces_ck CHECK (workspaces <> '{}')
);

-- One row: that objects of one kind were changed by one statement or exported, and by whom; rows are only appended.
CREATE TABLE audit (
    workspace_id bigint NOT NULL,
    entry_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL,
    operation text NOT NULL,
    request_id text NOT NULL,
    key_id uuid,
    for_user text NOT NULL,
    action text NOT NULL,
    object text NOT NULL,
    count bigint NOT NULL,
    ids text[] NOT NULL,
    ids_hash bytea,
    CONSTRAINT audit_pk PRIMARY KEY (workspace_id, entry_id),
    CONSTRAINT audit_action_ck CHECK (action IN ('add', 'change', 'remove', 'export', 'erase'))
);
CREATE INDEX audit_at_ix ON audit USING brin (at);

-- One row: where memories come from: a report file, a session log, a run.
CREATE TABLE sources (
    workspace_id bigint NOT NULL,
    source_id uuid NOT NULL,
    kind text NOT NULL,
    uri text NOT NULL,
    title text NOT NULL DEFAULT '',
    content_hash bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    retired_at timestamptz,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT sources_pk PRIMARY KEY (workspace_id, source_id),
    CONSTRAINT sources_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT sources_sources_kind_ck_ck CHECK (kind IN ('report', 'session', 'run', 'other'))
);
CREATE INDEX sources_created_ix ON sources (workspace_id, created_at, source_id);
CREATE UNIQUE INDEX sources_live_uri_uq ON sources (workspace_id, kind, uri, user_id) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX sources_session_uq ON sources (workspace_id, uri) WHERE kind = 'session' AND retired_at IS NULL;
CREATE INDEX sources_user_ix ON sources (workspace_id, user_id) WHERE user_id <> '';

-- One row: one retrievable unit: text, quality, provenance; retired ones keep their row (valid_until).
CREATE TABLE memories (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    kind text NOT NULL,
    source_id uuid,
    ordinal integer,
    title text NOT NULL,
    body text NOT NULL,
    language text NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    run_id text,
    final_score real,
    quality smallint NOT NULL DEFAULT '0',
    tokens integer NOT NULL,
    occurred_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    valid_until timestamptz,
    content_hash bytea NOT NULL,
    retired_as text,
    findings jsonb,
    uses integer NOT NULL DEFAULT 0,
    released boolean NOT NULL DEFAULT false,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT memories_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT memories_sources_fk FOREIGN KEY (workspace_id, source_id) REFERENCES sources,
    CONSTRAINT memories_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT memories_memories_final_score_ck_ck CHECK (final_score >= 0 AND final_score <= 10),
    CONSTRAINT memories_memories_kind_ck_ck CHECK (kind IN ('observation', 'chunk', 'message', 'cue', 'note')),
    CONSTRAINT memories_memories_quality_ck_ck CHECK (quality >= -3 AND quality <= 3),
    CONSTRAINT memories_retired_as_ck CHECK (retired_as IN ('gone', 'deleted', 'superseded', 'quarantined'))
);
CREATE INDEX memories_created_ix ON memories (workspace_id, created_at, memory_id);
CREATE INDEX memories_kind_ix ON memories (workspace_id, kind, memory_id) WHERE valid_until IS NULL;
CREATE UNIQUE INDEX memories_live_identity_uq 
    ON memories (workspace_id, content_hash, kind, source_id, ordinal, user_id) NULLS NOT DISTINCT
    WHERE valid_until IS NULL;
CREATE INDEX memories_live_user_ix ON memories (workspace_id, user_id) WHERE valid_until IS NULL;
CREATE INDEX memories_moment_ix ON memories (
    workspace_id, (CASE WHEN occurred_at IS NULL THEN created_at ELSE occurred_at END), memory_id
)
    WHERE valid_until IS NULL;
CREATE INDEX memories_quality_ix ON memories (workspace_id, quality, memory_id)
    WHERE quality <> 0 AND valid_until IS NULL;
CREATE INDEX memories_retired_ix ON memories (workspace_id, retired_as, valid_until) WHERE retired_as IS NOT NULL;
CREATE INDEX memories_run_ix ON memories (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX memories_score_ix ON memories (workspace_id, final_score, memory_id)
    WHERE final_score IS NOT NULL AND valid_until IS NULL;
CREATE INDEX memories_source_ix ON memories (workspace_id, source_id, ordinal) WHERE source_id IS NOT NULL;
CREATE INDEX memories_suspect_ix ON memories (workspace_id, created_at)
    WHERE valid_until IS NULL AND jsonb_path_exists(findings, '$[*]."severity"?(@ == "suspect")') AND NOT released;
CREATE INDEX memories_tags_ix ON memories USING gin (tags);
CREATE INDEX memories_user_ix ON memories (workspace_id, user_id) WHERE user_id <> '';

-- One row: how often and when a memory was recalled. Apart from `memories`, whose rows are wide and have a dozen indexes.
CREATE TABLE accesses (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    access_count integer NOT NULL DEFAULT 0,
    accessed_at timestamptz,
    CONSTRAINT accesses_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT accesses_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE
);

-- One row: the words of a live memory: a tsvector and its BM25 weights as a sparsevec.
CREATE TABLE lexical (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    terms tsvector NOT NULL,
    weights sparsevec(536870912) NOT NULL,
    length integer NOT NULL,
    CONSTRAINT lexical_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT lexical_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX lexical_terms_ix ON lexical USING gin (terms) WITH (fastupdate='on');

-- One row: a model; one is active.
CREATE TABLE embedding_models (
    model_id smallint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    dimension smallint NOT NULL,
    active boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    retiring_since timestamptz,
    CONSTRAINT embedding_models_pk PRIMARY KEY (model_id),
    CONSTRAINT embedding_models_name_uq UNIQUE (name),
    CONSTRAINT embedding_models_retiring_since_ck CHECK (NOT active OR retiring_since IS NULL)
);

-- One row: the vector of a passage of a live memory; a text that the model reads whole has one passage; a partition
-- for each model.
CREATE TABLE embeddings (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    model_id smallint NOT NULL,
    embedding halfvec NOT NULL,
    passage smallint NOT NULL DEFAULT 0,
    starts integer NOT NULL DEFAULT 0,
    ends integer,
    parts bytea STORAGE EXTERNAL,
    tokens bytea STORAGE EXTERNAL,
    CONSTRAINT embeddings_pk PRIMARY KEY (workspace_id, memory_id, model_id, passage),
    CONSTRAINT embeddings_embedding_models_fk FOREIGN KEY (model_id) REFERENCES embedding_models,
    CONSTRAINT embeddings_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE
) PARTITION BY LIST (model_id);
CREATE INDEX embeddings_passages_ix ON embeddings (workspace_id, memory_id) WHERE passage > 0;

-- One row: a live memory that has no vector yet, or lacks those of later passages (partial).
CREATE TABLE pending_embeddings (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    partial boolean NOT NULL DEFAULT false,
    CONSTRAINT pending_embeddings_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT pending_embeddings_memories_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX pending_embeddings_lacking_ix ON pending_embeddings (workspace_id) WHERE NOT partial;

-- One row: that a memory mentions another, is similar to it, is derived from it …; next is not stored.
CREATE TABLE links (
    workspace_id bigint NOT NULL,
    from_id uuid NOT NULL,
    to_id uuid NOT NULL,
    relation text NOT NULL,
    weight real NOT NULL DEFAULT '1',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT links_pk PRIMARY KEY (workspace_id, from_id, relation, to_id),
    CONSTRAINT links_from_fk FOREIGN KEY (workspace_id, from_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT links_to_fk FOREIGN KEY (workspace_id, to_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT links_links_itself_ck_ck CHECK (from_id <> to_id),
    CONSTRAINT links_links_relation_ck_ck CHECK (relation ~ '^[a-z][a-z0-9_]{0,39}$' AND relation <> 'next'),
    CONSTRAINT links_links_weight_ck_ck CHECK (weight > 0 AND weight <= 1)
);
CREATE INDEX links_in_ix ON links (workspace_id, to_id, relation, weight DESC, from_id);
CREATE INDEX links_out_ix ON links (workspace_id, from_id, relation, weight DESC, to_id) WHERE relation <> 'similar';

-- One row: the title of a live memory in the forms in which texts may mention it.
CREATE TABLE titles (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    key text NOT NULL,
    common boolean NOT NULL DEFAULT false,
    CONSTRAINT titles_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT titles_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX titles_key_ix ON titles (workspace_id, key);

-- One row: a live memory that is still to be linked by its words or its vector.
CREATE TABLE pending_links (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    step text NOT NULL,
    asked integer NOT NULL DEFAULT 1,
    CONSTRAINT pending_links_pk PRIMARY KEY (workspace_id, memory_id, step),
    CONSTRAINT pending_links_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT pending_links_pending_links_step_ck_ck CHECK (step IN ('words', 'vectors'))
);

-- One row: the number of a workspace's memories that contain a lexeme.
CREATE TABLE lexeme_statistics (
    workspace_id bigint NOT NULL,
    lexeme text NOT NULL,
    document_count integer NOT NULL,
    CONSTRAINT lexeme_statistics_pk PRIMARY KEY (workspace_id, lexeme),
    CONSTRAINT lexeme_statistics_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces ON DELETE CASCADE
);

-- One row: one execution of a pipeline.
CREATE TABLE runs (
    workspace_id bigint NOT NULL,
    run_id text NOT NULL,
    task text NOT NULL DEFAULT '',
    task_type text NOT NULL DEFAULT '',
    agent text,
    queries text[] NOT NULL DEFAULT '{}',
    output text,
    output_path text,
    lines integer,
    bytes bigint,
    round_scores real[] NOT NULL DEFAULT '{}',
    final_score real,
    verdict text NOT NULL DEFAULT '',
    issues text[] NOT NULL DEFAULT '{}',
    stages json NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    started_at timestamptz,
    finished_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    output_replaced boolean NOT NULL DEFAULT false,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT runs_pk PRIMARY KEY (workspace_id, run_id),
    CONSTRAINT runs_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT runs_runs_final_score_ck_ck CHECK (final_score >= 0 AND final_score <= 10)
);
CREATE INDEX runs_created_ix ON runs (workspace_id, created_at, run_id);

-- One row: what a report or a run judges: case, version, date, score, verdict, grade, and its issues as it states
-- them.
CREATE TABLE judgements (
    workspace_id bigint NOT NULL,
    judgement_id uuid NOT NULL,
    source_id uuid,
    run_id text,
    pointer text NOT NULL,
    case_name text NOT NULL,
    case_title text NOT NULL,
    version text NOT NULL,
    judged_at timestamptz,
    score real,
    stated float8,
    verdict text NOT NULL,
    passed boolean,
    grade text NOT NULL,
    judge text NOT NULL,
    basis text NOT NULL,
    summary text NOT NULL,
    lists_issues boolean NOT NULL,
    issues jsonb NOT NULL DEFAULT '[]',
    matched boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    advice text NOT NULL DEFAULT '',
    CONSTRAINT judgements_pk PRIMARY KEY (workspace_id, judgement_id),
    CONSTRAINT judgements_sources_fk FOREIGN KEY (workspace_id, source_id) REFERENCES sources ON DELETE CASCADE,
    CONSTRAINT judgements_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT judgements_basis_ck CHECK (basis IN ('judged', 'listed', 'reported')),
    CONSTRAINT judgements_origin_ck CHECK (num_nonnulls(source_id, run_id) = 1),
    CONSTRAINT judgements_score_ck CHECK (score >= 0 AND score <= 10)
);
CREATE INDEX judgements_case_ix ON judgements (workspace_id, case_name);
CREATE UNIQUE INDEX judgements_run_uq ON judgements (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX judgements_source_ix ON judgements (workspace_id, source_id) WHERE source_id IS NOT NULL;
CREATE INDEX judgements_unmatched_ix ON judgements (workspace_id, case_name) WHERE NOT matched;

-- One row: an issue of a case over all versions; each statement of it.
CREATE TABLE issues (
    workspace_id bigint NOT NULL,
    issue_id uuid NOT NULL,
    case_name text NOT NULL,
    title text NOT NULL,
    severity text NOT NULL,
    status text NOT NULL,
    versions text[] NOT NULL,
    mended_in text NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL DEFAULT now(),
    state text NOT NULL DEFAULT '',
    CONSTRAINT issues_pk PRIMARY KEY (workspace_id, issue_id),
    CONSTRAINT issues_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT issues_status_ck CHECK (status IN ('open', 'reopened', 'resolved', 'unnamed', 'mended'))
);
CREATE INDEX issues_case_ix ON issues (workspace_id, case_name);

-- One row: an issue of a case over all versions; each statement of it.
CREATE TABLE issue_occurrences (
    workspace_id bigint NOT NULL,
    judgement_id uuid NOT NULL,
    place smallint NOT NULL,
    version text NOT NULL,
    status text NOT NULL,
    issue_id uuid NOT NULL,
    severity text NOT NULL,
    CONSTRAINT issue_occurrences_pk PRIMARY KEY (workspace_id, judgement_id, place, version, status),
    CONSTRAINT issue_occurrences_issues_fk FOREIGN KEY (workspace_id, issue_id) REFERENCES issues ON DELETE CASCADE,
    CONSTRAINT issue_occurrences_judgements_fk FOREIGN KEY (workspace_id, judgement_id)
        REFERENCES judgements ON DELETE CASCADE
);
CREATE INDEX issue_occurrences_issue_ix ON issue_occurrences (workspace_id, issue_id);

-- One row: the fields of an observation beyond a memory's text: task, queries, narrative, facts, compressor.
CREATE TABLE observations (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    task text NOT NULL,
    task_type text NOT NULL,
    narrative text NOT NULL,
    facts text[] NOT NULL,
    output_path text,
    verdict text NOT NULL,
    compressor text NOT NULL,
    model text,
    prompt text,
    superseded_by uuid,
    queries text[] NOT NULL DEFAULT '{}',
    CONSTRAINT observations_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT observations_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT observations_observations_compressor_ck_ck CHECK (compressor IN ('llm', 'extractive', 'given'))
);
CREATE INDEX observations_task_ix ON observations (workspace_id, md5(task));

-- One row: a request for an observation and its outcome; earlier outputs of its run.
CREATE TABLE compressions (
    workspace_id bigint NOT NULL,
    observation_id uuid NOT NULL,
    run_id text,
    request jsonb NOT NULL,
    outcome text,
    reason text NOT NULL DEFAULT '',
    memory_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    moved_on boolean NOT NULL DEFAULT false,
    earlier boolean NOT NULL DEFAULT false,
    maker uuid,
    made_until timestamptz,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT compressions_pk PRIMARY KEY (workspace_id, observation_id),
    CONSTRAINT compressions_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT compressions_compressions_outcome_ck_ck CHECK (outcome IN ('stored', 'joined', 'refused'))
);
CREATE UNIQUE INDEX compressions_current_ix ON compressions (workspace_id, run_id, md5(request ->> 'task'))
    WHERE run_id IS NOT NULL AND NOT earlier;
CREATE INDEX compressions_memory_ix ON compressions (workspace_id, memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX compressions_run_ix ON compressions (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX compressions_waiting_ix ON compressions (created_at) WHERE outcome IS NULL;

-- One row: a session: its format, the file that it was read from, its time.
CREATE TABLE sessions (
    workspace_id bigint NOT NULL,
    source_id uuid NOT NULL,
    format text NOT NULL,
    path text NOT NULL DEFAULT '',
    log_hash bytea,
    extracted bytea,
    started_at timestamptz,
    ended_at timestamptz,
    deleted_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now(),
    maker uuid,
    made_until timestamptz,
    CONSTRAINT sessions_pk PRIMARY KEY (workspace_id, source_id),
    CONSTRAINT sessions_sources_fk FOREIGN KEY (workspace_id, source_id) REFERENCES sources ON DELETE CASCADE
);
CREATE INDEX sessions_path_ix ON sessions (workspace_id, path) WHERE path <> '';
CREATE INDEX sessions_started_ix ON sessions (workspace_id, started_at, source_id);

-- One row: the role of a turn, its tools with their results, and what was said where the memory's body is cut.
CREATE TABLE messages (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    role text NOT NULL,
    spoken text,
    tools jsonb NOT NULL DEFAULT '[]',
    digest bytea NOT NULL,
    message_id text NOT NULL DEFAULT '',
    CONSTRAINT messages_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT messages_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT messages_role_ck CHECK (role IN ('user', 'caller', 'assistant', 'tool', 'system'))
);

-- One row: a file, or a function or section in it; that a turn created, changed or deleted it.
CREATE TABLE artifacts (
    workspace_id bigint NOT NULL,
    artifact_id uuid NOT NULL,
    path text NOT NULL,
    symbol text NOT NULL DEFAULT '',
    CONSTRAINT artifacts_pk PRIMARY KEY (workspace_id, artifact_id),
    CONSTRAINT artifacts_path_uq UNIQUE (workspace_id, path, symbol),
    CONSTRAINT artifacts_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);

-- One row: a file, or a function or section in it; that a turn created, changed or deleted it.
CREATE TABLE artifact_touches (
    workspace_id bigint NOT NULL,
    artifact_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    action text NOT NULL,
    renamed_to text NOT NULL DEFAULT '',
    CONSTRAINT artifact_touches_pk PRIMARY KEY (workspace_id, artifact_id, memory_id, action),
    CONSTRAINT artifact_touches_artifacts_fk FOREIGN KEY (workspace_id, artifact_id)
        REFERENCES artifacts ON DELETE CASCADE,
    CONSTRAINT artifact_touches_memories_fk FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT artifact_touches_action_ck CHECK (action IN ('created', 'changed', 'deleted', 'renamed'))
);
CREATE INDEX artifact_touches_memory_ix ON artifact_touches (workspace_id, memory_id);
CREATE INDEX artifact_touches_renamed_ix ON artifact_touches (workspace_id, renamed_to) WHERE renamed_to <> '';

-- One row: the fields of a cue beyond a memory's text, with its vectors; a turn that it was learnt from.
CREATE TABLE cues (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    cue_kind text NOT NULL,
    details jsonb NOT NULL DEFAULT '{}',
    confidence real NOT NULL,
    consequence real NOT NULL,
    scope text NOT NULL,
    quote text NOT NULL,
    trust text NOT NULL,
    origin text NOT NULL,
    state text NOT NULL,
    action_types text[] NOT NULL,
    files text[] NOT NULL,
    seen_on date[] NOT NULL,
    model text NOT NULL,
    vectors bytea,
    valid_from timestamptz NOT NULL,
    valid_until timestamptz,
    superseded_by uuid,
    disputed_by uuid[] NOT NULL DEFAULT '{}',
    fired integer NOT NULL DEFAULT 0,
    heeded integer NOT NULL DEFAULT 0,
    ignored integer NOT NULL DEFAULT 0,
    last_fired_at timestamptz,
    revision bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    edited text[] NOT NULL DEFAULT '{}',
    CONSTRAINT cues_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT cues_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT cues_confidence_ck CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT cues_consequence_ck CHECK (consequence >= 0 AND consequence <= 1),
    CONSTRAINT cues_cue_kind_ck
        CHECK (cue_kind IN ('correction', 'preference', 'precedent', 'procedure', 'decision', 'discovery', 'negative_result')),
    CONSTRAINT cues_origin_ck CHECK (origin IN ('extracted', 'given', 'proposed')),
    CONSTRAINT cues_scope_ck CHECK (scope IN ('project', 'user')),
    CONSTRAINT cues_state_ck CHECK (state IN ('active', 'proposed', 'retired', 'superseded')),
    CONSTRAINT cues_trust_ck CHECK (trust IN ('person', 'agent', 'imported', 'web'))
);
CREATE INDEX cues_mined_ix ON cues (workspace_id, cue_kind) WHERE origin = 'proposed';
CREATE INDEX cues_revision_ix ON cues (workspace_id, revision);

-- One row: the fields of a cue beyond a memory's text, with its vectors; a turn that it was learnt from.
CREATE TABLE cue_evidence (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    place smallint NOT NULL,
    source_id uuid,
    turn_id uuid,
    session text NOT NULL,
    ordinal integer,
    quote text NOT NULL,
    at timestamptz,
    CONSTRAINT cue_evidence_pk PRIMARY KEY (workspace_id, memory_id, place),
    CONSTRAINT cue_evidence_cues_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES cues ON DELETE CASCADE
);
CREATE INDEX cue_evidence_source_ix ON cue_evidence (workspace_id, source_id) WHERE source_id IS NOT NULL;

-- One row: a number that grows with each write to a workspace's cues.
CREATE TABLE cue_revisions (
    workspace_id bigint NOT NULL,
    revision bigint NOT NULL,
    CONSTRAINT cue_revisions_pk PRIMARY KEY (workspace_id),
    CONSTRAINT cue_revisions_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);

-- One row: an act of a session, with its places among all acts.
CREATE TABLE session_acts (
    workspace_id bigint NOT NULL,
    act text NOT NULL,
    source_id uuid NOT NULL,
    places integer[] NOT NULL,
    CONSTRAINT session_acts_pk PRIMARY KEY (workspace_id, act, source_id),
    CONSTRAINT session_acts_sources_fk FOREIGN KEY (workspace_id, source_id) REFERENCES sources ON DELETE CASCADE
);
CREATE INDEX session_acts_source_ix ON session_acts (workspace_id, source_id);

-- One row: a change to cues that was proposed, with a person's decision on it and what an undo needs.
CREATE TABLE cue_proposals (
    workspace_id bigint NOT NULL,
    proposal_id uuid NOT NULL,
    change text NOT NULL,
    key text NOT NULL,
    cue_ids uuid[] NOT NULL,
    target_id uuid,
    relation text NOT NULL,
    reason text NOT NULL,
    state text NOT NULL DEFAULT 'open',
    before jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    decided_at timestamptz,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT cue_proposals_pk PRIMARY KEY (workspace_id, proposal_id),
    CONSTRAINT cue_proposals_key_uq UNIQUE (workspace_id, change, key),
    CONSTRAINT cue_proposals_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT cue_proposals_change_ck
        CHECK (change IN ('merge', 'broaden', 'graduate', 'retire', 'stale', 'note', 'procedure', 'candidate',
            'harmful')),
    CONSTRAINT cue_proposals_state_ck CHECK (state IN ('open', 'accepted', 'declined', 'undone'))
);

-- One row: a logged activation, and the cues that it told, with their outcomes.
CREATE TABLE activations (
    workspace_id bigint NOT NULL,
    activation_id uuid NOT NULL,
    plan text NOT NULL,
    files text[] NOT NULL,
    agent text,
    run_id text,
    budget_tokens integer NOT NULL,
    tokens integer NOT NULL,
    degraded text NOT NULL,
    took_ms real NOT NULL,
    settled_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT activations_pk PRIMARY KEY (workspace_id, activation_id),
    CONSTRAINT activations_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);
CREATE INDEX activations_run_ix ON activations (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX activations_user_ix ON activations (workspace_id, user_id) WHERE user_id <> '';

-- One row: a logged activation, and the cues that it told, with their outcomes.
CREATE TABLE activation_cues (
    workspace_id bigint NOT NULL,
    activation_id uuid NOT NULL,
    rank smallint NOT NULL,
    memory_id uuid NOT NULL,
    score real NOT NULL,
    explain jsonb NOT NULL,
    outcome text,
    CONSTRAINT activation_cues_pk PRIMARY KEY (workspace_id, activation_id, rank),
    CONSTRAINT activation_cues_activations_fk FOREIGN KEY (workspace_id, activation_id)
        REFERENCES activations ON DELETE CASCADE,
    CONSTRAINT activation_cues_outcome_ck CHECK (outcome IN ('heeded', 'ignored'))
);
CREATE INDEX activation_cues_memory_ix ON activation_cues (workspace_id, memory_id);

-- One row: a context as it was given, whole, for as long as the trash; a text that contexts name.
CREATE TABLE contexts (
    workspace_id bigint NOT NULL,
    context_id uuid NOT NULL,
    run_id text,
    session text,
    agent text,
    model text NOT NULL,
    format text NOT NULL,
    budget integer NOT NULL,
    tokens integer NOT NULL,
    prefix text NOT NULL,
    document json NOT NULL,
    took_ms real NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    CONSTRAINT contexts_pk PRIMARY KEY (workspace_id, context_id),
    CONSTRAINT contexts_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);
CREATE INDEX contexts_run_ix ON contexts (workspace_id, run_id, context_id) WHERE run_id IS NOT NULL;
CREATE INDEX contexts_user_ix ON contexts (workspace_id, user_id) WHERE user_id <> '';

-- One row: a rating, or the undoing of one; rows are only appended.
CREATE TABLE feedback (
    workspace_id bigint NOT NULL,
    feedback_id uuid NOT NULL,
    "position" bigint GENERATED ALWAYS AS IDENTITY,
    memory_id uuid NOT NULL,
    rating smallint,
    undoes uuid,
    comment text NOT NULL DEFAULT '',
    run_id text,
    idempotency_key text,
    created_at timestamptz NOT NULL DEFAULT now(),
    reviewer text,
    CONSTRAINT feedback_pk PRIMARY KEY (workspace_id, feedback_id),
    CONSTRAINT feedback_idempotency_key_uq UNIQUE (workspace_id, idempotency_key),
    CONSTRAINT feedback_undoes_uq UNIQUE (workspace_id, undoes),
    CONSTRAINT feedback_memories_fk FOREIGN KEY (workspace_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    CONSTRAINT feedback_feedback_rating_ck_ck CHECK ((rating IN (-1, 1)) <> (undoes IS NOT NULL))
);
CREATE INDEX feedback_memory_ix ON feedback (workspace_id, memory_id, "position");

-- One row: a map of memories as it was drawn for a user, with the place of each in it.
CREATE TABLE maps (
    workspace_id bigint NOT NULL,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    kind text NOT NULL,
    node_limit integer NOT NULL,
    clusters jsonb NOT NULL,
    memory_ids uuid[] NOT NULL,
    xs float8[] NOT NULL,
    ys float8[] NOT NULL,
    members smallint[] NOT NULL,
    computed_at timestamptz NOT NULL,
    CONSTRAINT maps_pk PRIMARY KEY (workspace_id, user_id, kind, node_limit),
    CONSTRAINT maps_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);

-- One row: a past ingestion with the outcome of each of its files.
CREATE TABLE ingestions (
    workspace_id bigint NOT NULL,
    ingestion_id uuid NOT NULL,
    seconds real NOT NULL,
    counts jsonb NOT NULL,
    outcomes jsonb NOT NULL,
    degraded text NOT NULL DEFAULT '',
    finished_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT ingestions_pk PRIMARY KEY (workspace_id, ingestion_id),
    CONSTRAINT ingestions_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);

-- One row: the number of memories of a workspace that were not stored, by reason.
CREATE TABLE refusals (
    workspace_id bigint NOT NULL,
    reason text NOT NULL,
    count bigint NOT NULL,
    last_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT refusals_pk PRIMARY KEY (workspace_id, reason),
    CONSTRAINT refusals_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);

-- One row: a logged retrieval and the hits it gave, each with every component of its score.
CREATE TABLE recalls (
    workspace_id bigint NOT NULL,
    recall_id uuid NOT NULL,
    purpose text NOT NULL,
    query text NOT NULL,
    agent text,
    run_id text,
    parameters jsonb NOT NULL,
    mode text NOT NULL,
    degraded jsonb NOT NULL,
    tokens integer,
    took_ms real NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    hits smallint NOT NULL DEFAULT 0,
    user_id text NOT NULL DEFAULT coalesce(current_setting('priors.user', true), ''),
    counted boolean NOT NULL DEFAULT false,
    withheld jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT recalls_pk PRIMARY KEY (workspace_id, recall_id),
    CONSTRAINT recalls_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);
CREATE INDEX recalls_empty_ix ON recalls (workspace_id, recall_id) WHERE hits = 0;
CREATE INDEX recalls_run_ix ON recalls (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX recalls_uncounted_ix ON recalls (workspace_id, recall_id) WHERE NOT counted;
CREATE INDEX recalls_user_ix ON recalls (workspace_id, user_id) WHERE user_id <> '';

-- One row: a logged retrieval and the hits it gave, each with every component of its score.
CREATE TABLE recall_hits (
    workspace_id bigint NOT NULL,
    recall_id uuid NOT NULL,
    rank smallint NOT NULL,
    memory_id uuid NOT NULL,
    score real NOT NULL,
    explain jsonb NOT NULL,
    used boolean NOT NULL DEFAULT false,
    propensity real,
    shown integer[],
    CONSTRAINT recall_hits_pk PRIMARY KEY (workspace_id, recall_id, rank),
    CONSTRAINT recall_hits_recalls_fk FOREIGN KEY (workspace_id, recall_id) REFERENCES recalls ON DELETE CASCADE
);
CREATE INDEX recall_hits_memory_ix ON recall_hits (workspace_id, memory_id);

-- One row: the blocks of the latest stable history of a run, without their text.
CREATE TABLE run_sections (
    workspace_id bigint NOT NULL,
    run_id text NOT NULL,
    recall_id uuid NOT NULL,
    blocks jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT run_sections_pk PRIMARY KEY (workspace_id, run_id),
    CONSTRAINT run_sections_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces
);

-- One row: the estimated effect on later runs of a memory, or of a kind of memories (the zero id).
CREATE TABLE effects (
    workspace_id bigint NOT NULL,
    memory_id uuid NOT NULL,
    kind text NOT NULL,
    estimate float8 NOT NULL,
    deviation float8 NOT NULL,
    low float8 NOT NULL,
    high float8 NOT NULL,
    harmful float8 NOT NULL,
    basis text NOT NULL,
    runs_with integer NOT NULL,
    runs_without integer NOT NULL,
    enough boolean NOT NULL,
    flagged boolean NOT NULL,
    influence real NOT NULL,
    estimated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT effects_pk PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT effects_workspaces_fk FOREIGN KEY (workspace_id) REFERENCES workspaces,
    CONSTRAINT effects_basis_ck CHECK (basis IN ('experimental', 'observational'))
);

-- Adds a job unless one with its lock is pending, in one round trip and without a savepoint of the caller.
CREATE FUNCTION priors_enqueue(task text, priority integer, alone text, job_lock text, arguments jsonb, after_seconds float8)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        'default', task, priority, alone, job_lock, arguments,
        CASE WHEN after_seconds > 0 THEN now() + make_interval(secs => after_seconds) END
    )::procrastinate_job_to_defer_v1]);
EXCEPTION WHEN unique_violation THEN
    NULL;
END $$;

-- Tells whether a workspace has an index of its vectors of a model.
CREATE FUNCTION priors_is_indexed(model smallint, workspace bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pg_index WHERE indisvalid
        AND indexrelid = to_regclass('embeddings_' || model || '_' || workspace || '_hnsw')
    );
END $$;

-- What is not leakproof, as text search's `@@` is not, would be evaluated after the policy, on every row of the workspace.
-- The functions below run as the owner (security.sql), look it up in the index, and take the workspace from the session.
-- PL/pgSQL keeps its plan for the session, which a function in SQL does from Postgres 18 on only.
CREATE FUNCTION priors_workspace(wanted text) RETURNS SETOF workspaces LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT * FROM workspaces w WHERE w.name = wanted;
END $$;

CREATE FUNCTION priors_make_workspace(wanted text, spoken text) RETURNS SETOF workspaces LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    INSERT INTO workspaces (name, language, languages) VALUES (wanted, spoken, ARRAY[spoken])
    ON CONFLICT (name) DO NOTHING;
    RETURN QUERY SELECT * FROM workspaces w WHERE w.name = wanted;
END $$;

-- Without a limit they come in no order: a filter is still to be applied, and the caller sorts what it leaves.
CREATE FUNCTION priors_lexical(match tsquery, query sparsevec, most integer)
RETURNS TABLE(memory_id uuid, bm25 float8) LANGUAGE plpgsql STABLE ROWS 60 AS $$
DECLARE own constant bigint := nullif(current_setting('priors.workspace_id', true), '')::bigint;
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
END $$;

CREATE FUNCTION priors_matching(match tsquery, most integer) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 20 AS $$
DECLARE own constant bigint := nullif(current_setting('priors.workspace_id', true), '')::bigint;
BEGIN
    RETURN QUERY SELECT l.memory_id FROM lexical l
        WHERE l.workspace_id = own AND l.terms @@ (quote_literal('workspace:' || own)::tsquery && match) LIMIT most;
END $$;

CREATE FUNCTION priors_tagged(wanted text[], most integer) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 200 AS $$
DECLARE own constant bigint := nullif(current_setting('priors.workspace_id', true), '')::bigint;
BEGIN
    RETURN QUERY SELECT m.memory_id FROM memories m
        WHERE m.workspace_id = own AND m.valid_until IS NULL AND m.tags @> wanted AND (user_id = '' AND coalesce(current_setting('priors.sees', true), '') <> 'own' OR user_id = COALESCE(current_setting('priors.user'::text, true), ''::text) OR coalesce(current_setting('priors.sees', true), '') = '') LIMIT most;
END $$;

CREATE FUNCTION priors_of_task(wanted text) RETURNS SETOF uuid LANGUAGE plpgsql STABLE ROWS 5 AS $$
DECLARE own constant bigint := nullif(current_setting('priors.workspace_id', true), '')::bigint;
BEGIN
    RETURN QUERY SELECT o.memory_id FROM observations o
        WHERE o.workspace_id = own AND md5(o.task) = md5(wanted) AND o.task = wanted;
END $$;

-- The first model is registered by whoever embeds first, in whichever workspace.
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
END $$;

CREATE FUNCTION priors_merge_pending() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN gin_clean_pending_list('lexical_terms_ix'::regclass);
END $$;

-- The time of a use is written once a minute at most, so that a busy key costs no write a request.
CREATE FUNCTION priors_key(wanted bytea) RETURNS SETOF api_keys LANGUAGE plpgsql ROWS 1 AS $$
BEGIN
    UPDATE api_keys SET last_used_at = now() WHERE digest = wanted AND revoked_at IS NULL
        AND coalesce(expires_at > now(), true) AND coalesce(last_used_at < now() - interval '1 minute', true);
    RETURN QUERY SELECT * FROM api_keys k WHERE k.digest = wanted AND k.revoked_at IS NULL
        AND coalesce(k.expires_at > now(), true);
END $$;

CREATE FUNCTION priors_keys_exist() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM api_keys WHERE revoked_at IS NULL);
END $$;

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
