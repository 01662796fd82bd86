r"""Words of a script that the text's language does not write are stemmed as the language that writes it: Russian in an
English text. `priors_phrase` makes the query for a phrase from the same words.

Locks: the rows of `lexical` whose words change, those of texts with such a script in a language that does not write it;
and for a moment all of it, until the writers of that moment are done. Services of the version before go on writing
meanwhile, so all texts are read again once the functions are committed. Reading 30,000 English texts of 1 kB takes
0.4 s, Russian ones 8 s.
"""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

# Cyrillic, Greek, Arabic, Armenian, Devanagari, Tamil: each with its configuration, and those that keep such words.
SCRIPTS = {
    "russian": (r"\u0400-\u052f", "russian,serbian"),
    "greek": (r"\u0370-\u03ff\u1f00-\u1fff", "greek"),
    "arabic": (r"\u0600-\u06ff\u0750-\u077f", "arabic"),
    "armenian": (r"\u0531-\u058f", "armenian"),
    "hindi": (r"\u0900-\u097f", "hindi,nepali"),
    "tamil": (r"\u0b80-\u0bff", "tamil"),
}
LETTERS = "".join(letters for letters, _ in SCRIPTS.values())
SPEAKERS = ", ".join(f"('{name}', '[{letters}]', '{{{own}}}')" for name, (letters, own) in SCRIPTS.items())
# Both configurations read the text whole, with one parser, so that every word keeps its position. `content` has no
# backslash any more, so that a quoted lexeme is one to a tsvector too.
BY_SCRIPT = rf"""
CREATE OR REPLACE FUNCTION priors_terms_by_script(language regconfig, content text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE
    found tsvector := to_tsvector(language, content);
    script record;
BEGIN
    FOR script IN
        SELECT configuration::regconfig, letters FROM (VALUES {SPEAKERS}) AS s(configuration, letters, own)
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
END $$
"""  # noqa: S608 - constants
# The lengths tell an ASCII text, in a fiftieth of the time that the pattern takes.
TERMS = rf"""
CREATE OR REPLACE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN CASE
    WHEN octet_length(content) > length(content) AND language <> 'simple'::regconfig AND content ~ '[{LETTERS}]'
    THEN priors_terms_by_script(language, priors_spaced(content)) ELSE to_tsvector(language, priors_spaced(content)) END
"""
TERMS_BEFORE = """
CREATE OR REPLACE FUNCTION priors_terms(language regconfig, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN to_tsvector(language, priors_spaced(content))
"""
PHRASE = """
CREATE OR REPLACE FUNCTION priors_phrase(language regconfig, content text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN (
    SELECT string_agg(coalesce(' <' || step || '> ', '') || quote_literal(lexeme), '' ORDER BY place)::tsquery FROM (
        SELECT lexeme, place, place - lag(place) OVER (ORDER BY place) AS step
        FROM unnest(priors_terms(language, content)) AS word, unnest(positions) AS place
    ) AS words
)
"""
INDEX_AGAIN = rf"""
WITH read AS (
    SELECT m.workspace_id, m.memory_id, CAST(m.language AS regconfig) AS language, concat_ws(E'\n',
        m.title, to_char(m.occurred_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'), m.body, o.task,
        array_to_string(o.queries, E'\n'), CASE WHEN o.task IS NOT NULL THEN array_to_string(m.tags, E'\n') END
    ) AS content
    FROM memories m LEFT JOIN observations o USING (workspace_id, memory_id)
    WHERE m.valid_until IS NULL AND m.language <> 'simple'
), parsed AS MATERIALIZED (
    SELECT workspace_id, memory_id, priors_terms(language, content) AS terms
    FROM read WHERE octet_length(content) > length(content) AND content ~ '[{LETTERS}]'
), changed AS (
    UPDATE lexical l SET terms = p.terms || array_to_tsvector(ARRAY['workspace:' || l.workspace_id::text]),
        weights = priors_weights(p.terms, w.mean_length, 1.2, 0.4), length = priors_length(p.terms)
    FROM parsed p JOIN workspaces w USING (workspace_id)
    WHERE l.workspace_id = p.workspace_id AND l.memory_id = p.memory_id
        AND l.terms <> p.terms || array_to_tsvector(ARRAY['workspace:' || l.workspace_id::text])
    RETURNING l.workspace_id
)
UPDATE workspaces SET statistics_at = '-infinity' WHERE workspace_id IN (SELECT workspace_id FROM changed)
"""  # noqa: S608 - constants
# Whoever has read a text by the functions before has committed its words then.
WAIT_FOR_WRITERS = "DO $$ BEGIN LOCK TABLE lexical IN SHARE MODE; END $$"


def upgrade() -> None:
    op.execute(BY_SCRIPT)
    op.execute("ALTER FUNCTION priors_terms_by_script(regconfig, text) OWNER TO priors_owner")
    op.execute(TERMS)
    op.execute(PHRASE)
    op.execute("ALTER FUNCTION priors_phrase(regconfig, text) OWNER TO priors_owner")
    op.execute(INDEX_AGAIN)
    with op.get_context().autocommit_block():
        op.execute(WAIT_FOR_WRITERS)
        op.execute(INDEX_AGAIN)
        op.execute("SELECT priors_merge_pending()")


def downgrade() -> None:
    op.execute("DROP FUNCTION priors_phrase")
    op.execute(TERMS_BEFORE)
    op.execute(INDEX_AGAIN)
    op.execute("SELECT priors_merge_pending()")
    op.execute("DROP FUNCTION priors_terms_by_script")
