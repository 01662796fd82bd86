"""The SQL by which one text holds another in whole words."""

SHORTEST_HELD = 20
"""Characters of a text that is looked for within another one; a shorter one, as "Yes, do it.", stands in texts that say
something else."""


def plain(text: str) -> str:
    """Returns an expression for a text without marks, line ends and case, between two blanks.

    "- **Never** drop" says the same as "never drop". By the blanks, a text holds another only in whole words.
    """
    return f"lower(regexp_replace(' ' || {text} || ' ', '[^[:alnum:]]+', ' ', 'g'))"


def is_long(text: str) -> str:
    """Returns a condition that a plain text is long enough to be looked for within another one."""
    return f"length({text}) >= {SHORTEST_HELD + 2}"
