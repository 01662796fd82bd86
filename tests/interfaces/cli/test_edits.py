"""Edits of the settings files of other programs."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidInput
from app.interfaces.cli.edits import read_jsonc, with_endings_of, with_table, with_value

SERVER = {"url": "http://127.0.0.1:8000/mcp", "headers": {"X-Workspace": "shop"}}
PATH = ("mcpServers", "priors")
TABLE = ("mcp_servers", "priors")
JSONC = """// mine
{
  "theme": "One", // nice
  "mcpServers": {
    /* the other one */
    "other": {"command": "x", "args": ["a,]", "// no comment"],},
  },
}
"""
TOML = """# mine
model = "x" # nice

[mcp_servers.other]
command = "y"

[profiles.fast]
model = "z"
"""
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def test_comments_and_commas_at_the_end_stay() -> None:
    after = with_value(JSONC, PATH, SERVER, "settings.json")
    for kept in ("// mine\n", '"theme": "One", // nice\n', "/* the other one */", '["a,]", "// no comment"],}'):
        assert kept in after
    assert read_jsonc(after, "")["mcpServers"]["priors"] == SERVER


def test_what_was_inserted_can_be_taken_away() -> None:
    after = with_value(JSONC, PATH, SERVER, "settings.json")
    removed = with_value(after, PATH, None, "settings.json")
    assert read_jsonc(removed, "") == read_jsonc(JSONC, "")
    assert with_value(removed, PATH, None, "settings.json") == removed


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.sampled_from([None, 0, 2]))
def test_any_object_gets_the_member_and_loses_it_again(stored: dict[str, object], indent: int | None) -> None:
    text = json.dumps(stored, indent=indent)
    after = with_value(text, PATH, SERVER, "settings.json")
    assert json.loads(after) == {**stored, "mcpServers": {"priors": SERVER}}
    assert json.loads(with_value(after, PATH, None, "settings.json")) == stored


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_other_servers_stay(others: dict[str, object]) -> None:
    text = json.dumps({"mcpServers": others})
    after = with_value(text, PATH, SERVER, "settings.json")
    assert json.loads(after)["mcpServers"] == {**others, "priors": SERVER}
    assert json.loads(with_value(after, PATH, None, "settings.json")) == {"mcpServers": others}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
        ('{"mcpServers": []}', "that is no object"),
        ('{"mcpServers": {"priors": {"url": "x" /* mine */}}}', "edit it by hand"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        with_value(text, PATH, SERVER, "settings.json")


def test_a_table_is_added_replaced_and_taken_away() -> None:
    added = with_table(TOML, TABLE, {"url": "a"}, "config.toml")
    replaced = with_table(added, TABLE, {"url": "b"}, "config.toml")
    assert tomllib.loads(replaced) == {
        **tomllib.loads(TOML),
        "mcp_servers": {"other": {"command": "y"}, "priors": {"url": "b"}},
    }
    assert tomllib.loads(with_table(replaced, TABLE, None, "config.toml")) == tomllib.loads(TOML)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", "is no TOML"),
        ("mcp_servers = 1", "that is no table"),
        ("[mcp_servers]\npriors = 1", "that is no table"),
    ],
)
def test_a_table_in_another_form_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        with_table(text, TABLE, {"url": "a"}, "config.toml")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { priors = { url = "x" } }',
        '[mcp_servers]\npriors.url = "x"\n',
        '[mcp_servers.priors]\nurl = "x" # mine\n',
        "[mcp_servers.a]\nb = 1\n[c]\n[mcp_servers.d]\n",
    ],
)
def test_a_table_in_any_form_gets_its_field_and_goes(text: str) -> None:
    after = with_table(text, TABLE, {"url": "a"}, "config.toml")
    tables = tomllib.loads(text)["mcp_servers"]
    assert tomllib.loads(after)["mcp_servers"] == {**tables, "priors": {"url": "a"}}
    tables.pop("priors", None)
    assert tomllib.loads(with_table(after, TABLE, None, "config.toml")).get("mcp_servers", {}) == tables


def test_comments_and_a_persons_fields_of_a_table_stay() -> None:
    text = TOML.replace(
        "[profiles.fast]", '[mcp_servers.priors]\n# slow\ntimeout = 9\nurl = "a"\n\n# mine\n[profiles.fast]'
    )
    after = with_table(text, TABLE, {"url": "b"}, "config.toml")
    assert tomllib.loads(after)["mcp_servers"]["priors"] == {"url": "b", "timeout": 9}
    for kept in ("# slow\ntimeout = 9\n", "\n# mine\n[profiles.fast]\n"):
        assert kept in after
    assert with_table(after, TABLE, {"url": "b"}, "config.toml") == after


def test_the_comment_behind_a_table_is_about_what_follows_and_stays_there() -> None:
    behind = "# mine\n[profiles.fast]"
    text = TOML.replace("[profiles.fast]", f'[mcp_servers.priors]\nurl = "a"\n\n{behind}')
    assert with_table(text, TABLE, None, "config.toml") == TOML.replace("[profiles.fast]", behind)
    added = with_table(text, TABLE, {"command": "b"}, "config.toml")
    assert f'url = "a"\ncommand = "b"\n\n{behind}' in added
    at_the_end = '[mcp_servers.priors]\nurl = "a"\n\n# mine\n'
    assert with_table(at_the_end, TABLE, None, "config.toml") == "# mine\n"
    in_a_value = '[mcp_servers.priors]\nurl = """\n# a\n[b]\n"""\n[c]\n'
    assert with_table(in_a_value, TABLE, None, "config.toml") == "[c]\n"


@pytest.mark.parametrize("text", ["// mine", "/* mine */\n", " \n"])
def test_a_file_with_comments_only_gets_an_object(text: str) -> None:
    after = with_value(text, PATH, SERVER, "settings.json")
    assert after.startswith(text)
    assert read_jsonc(after, "") == {"mcpServers": {"priors": SERVER}}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_line_endings_of_a_file_stay(ending: str) -> None:
    text = JSONC.replace("\n", ending)
    after = with_endings_of(text, lambda given: with_value(given, PATH, SERVER, "settings.json"))
    assert {line.endswith("\r") for line in after.split("\n")[:-1]} == {ending == "\r\n"}
    assert read_jsonc(after, "")["mcpServers"]["priors"] == SERVER
