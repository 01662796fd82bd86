"""Words are indexed and looked up in one form: NFKC, without soft hyphens, zero-width characters and marks.

Locks: none but those of the rows. It reads all live memories once, a minute for some millions, and indexes again those
whose text is in another form. Their bodies and vectors stay. Down, the same rows are indexed in their own form.
"""

from alembic import op

revision = "0056"
down_revision = "0055"
branch_labels = None
depends_on = None

FOLDED = r"""
CREATE FUNCTION priors_folded(content text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE WHEN octet_length(content) > length(content) THEN translate(normalize(translate(
    regexp_replace(content, '(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))', '', 'g'),
    E'\u2122\u2120\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff', '  '
), NFKC), E'\u2010\u2011', '--') ELSE content END
"""  # noqa: E501 - as schema.sql has it
TERMS = r"""
CREATE OR REPLACE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE
    WHEN octet_length(content) > length(content) AND language <> 'simple'::regconfig AND content ~ '[\u0400-\u052f\u0370-\u03ff\u1f00-\u1fff\u0600-\u06ff\u0750-\u077f\u0531-\u058f\u0900-\u097f\u0b80-\u0bff]'
    THEN priors_terms_by_script(language, priors_spaced(priors_folded(content)))
    ELSE to_tsvector(language, priors_spaced(priors_folded(content))) END
"""  # noqa: E501 - as above
TERMS_BEFORE = r"""
CREATE OR REPLACE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE
    WHEN octet_length(content) > length(content) AND language <> 'simple'::regconfig AND content ~ '[\u0400-\u052f\u0370-\u03ff\u1f00-\u1fff\u0600-\u06ff\u0750-\u077f\u0531-\u058f\u0900-\u097f\u0b80-\u0bff]'
    THEN priors_terms_by_script(language, priors_spaced(content)) ELSE to_tsvector(language, priors_spaced(content)) END
"""  # noqa: E501 - as above
INDEX_AGAIN = """
WITH given AS (
    SELECT m.workspace_id, m.memory_id, m.language, concat_ws(E'\\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body, o.task,
        array_to_string(o.queries, E'\\n'), CASE WHEN m.kind = 'chunk' THEN concat_ws(
            ' ', m.metadata ->> 'case', m.metadata ->> 'version', 'verdict ' || (m.metadata ->> 'verdict')
        ) END, CASE WHEN o.task IS NOT NULL THEN array_to_string(m.tags, E'\\n') END
    ) AS content
    FROM memories m LEFT JOIN observations o USING (workspace_id, memory_id)
    WHERE m.valid_until IS NULL AND octet_length(m.title || m.body) > length(m.title || m.body)
), parsed AS MATERIALIZED (
    SELECT workspace_id, memory_id, priors_terms(CAST(language AS regconfig), content) AS terms
    FROM given WHERE content <> priors_folded(content)
)
UPDATE lexical l SET terms = p.terms || array_to_tsvector(ARRAY['workspace:' || l.workspace_id::text]),
    weights = priors_weights(p.terms, w.mean_length, 1.2, 0.4), length = priors_length(p.terms)
FROM parsed p, workspaces w
WHERE l.workspace_id = p.workspace_id AND l.memory_id = p.memory_id AND w.workspace_id = p.workspace_id
"""
"""The words of `app.storage.index.indexing.INDEX_WORDS`, with its weights, as they are at this revision."""


def upgrade() -> None:
    op.execute(FOLDED)
    op.execute("ALTER FUNCTION priors_folded(text) OWNER TO priors_owner")
    op.execute("GRANT EXECUTE ON FUNCTION priors_folded(text) TO priors_service")
    op.execute(TERMS)
    op.execute(INDEX_AGAIN)


def downgrade() -> None:
    op.execute(TERMS_BEFORE)
    op.execute(INDEX_AGAIN)
    op.execute("DROP FUNCTION priors_folded(text)")
