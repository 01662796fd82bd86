"""Texts in scripts without blanks between words are indexed by pairs of characters; ё counts as е.

Locks: none that matters; the rows of `lexical` whose text has such a script are updated, and no others. All texts are
read: 30,000 English ones of 1 kB in 0.4 s.
"""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

# Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean. Korean has blanks, but its particles stick to their words.
UNSPACED = (
    r"\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    r"\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# Postgres takes a run of such characters for one word. Overlapping pairs (内存泄漏: 内存, 存泄, 泄漏) need no
# dictionary, and a question has the text's own pairs wherever both have the same word. At most 1 MB fits into a
# tsvector, so the characters after the 30,000th are left as they are. The lengths tell an ASCII text, in a fiftieth of
# the time that the pattern takes.
SPACED = rf"""
CREATE FUNCTION priors_spaced(content text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN translate(CASE WHEN octet_length(content) > length(content) AND content ~ '[{UNSPACED}]' THEN regexp_replace(
    regexp_replace(left(content, 30000), '([{UNSPACED}]+)', ' \1 ', 'g'),
    '(?<=[{UNSPACED}])([{UNSPACED}])(?=[{UNSPACED}])', '\1 \1', 'g'
) || substr(content, 30001) ELSE content END, '/\ёЁ', '  еЕ')
"""
TERMS = """
CREATE OR REPLACE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN to_tsvector(language, {content})
"""
INDEX_AGAIN = rf"""
WITH read AS (
    SELECT m.workspace_id, m.memory_id, CAST(m.language AS regconfig) AS language, concat_ws(E'\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body, o.task,
        array_to_string(o.queries, E'\n'), CASE WHEN o.task IS NOT NULL THEN array_to_string(m.tags, E'\n') END
    ) AS content
    FROM memories m LEFT JOIN observations o USING (workspace_id, memory_id) WHERE m.valid_until IS NULL
), parsed AS MATERIALIZED (
    SELECT workspace_id, memory_id, priors_terms(language, content) AS terms
    FROM read WHERE octet_length(content) > length(content) AND content ~ '[ёЁ{UNSPACED}]'
), stale AS (
    UPDATE workspaces SET statistics_at = '-infinity' WHERE workspace_id IN (SELECT workspace_id FROM parsed)
)
UPDATE lexical l SET terms = p.terms || array_to_tsvector(ARRAY['workspace:' || l.workspace_id::text]),
    weights = priors_weights(p.terms, w.mean_length, 1.2, 0.4), length = priors_length(p.terms)
FROM parsed p JOIN workspaces w USING (workspace_id)
WHERE l.workspace_id = p.workspace_id AND l.memory_id = p.memory_id
"""  # noqa: S608 - constants


def upgrade() -> None:
    op.execute(SPACED)
    op.execute("ALTER FUNCTION priors_spaced(text) OWNER TO priors_owner")
    op.execute(TERMS.format(content="priors_spaced(content)"))
    op.execute(INDEX_AGAIN)


def downgrade() -> None:
    op.execute(TERMS.format(content="translate(content, '/\\', '  ')"))
    op.execute(INDEX_AGAIN)
    op.execute("DROP FUNCTION priors_spaced")
