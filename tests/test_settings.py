"""Settings from the environment."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from app.errors import ConfigurationError
from app.settings import Settings, check_exposure, from_environment


def test_nothing_set_is_the_defaults() -> None:
    assert from_environment({}) == Settings()


def test_each_value_is_read_by_its_type() -> None:
    settings = from_environment(
        {"PRIORS_PORT": "9", "PRIORS_DATA_DIR": "/x", "PRIORS_EMBEDDED_WORKER": "no", "PRIORS_LLM_TIMEOUT": "1.5"}
    )
    assert (settings.port, settings.data_dir, settings.embedded_worker, settings.llm_timeout) == (
        9, Path("/x"), False, 1.5,
    )  # fmt: skip


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]  # the case under test


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "x"), ("PORT", "70000"), ("POOL_SIZE", "0"), ("EMBEDDED_WORKER", "maybe"), ("LOG_LEVEL", "loud"),
        ("EMBEDDING_PROVIDER", "magic"), ("NOT_A_SETTING", "1"), ("ADMIN_KEY", "k"),
        ("AUDIT_DAYS", "-1"), ("AUDIT_DAYS", "1000001"), ("TRASH_DAYS", "99999999"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"PRIORS_{name}"):
        from_environment({f"PRIORS_{name}": value})


def test_other_variables_and_those_of_the_tests_are_left_alone() -> None:
    assert from_environment({"HOME": "/", "PRIORS_TEST_DATABASE_URL": "x"}) == Settings()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_alone_needs_no_key(host: str) -> None:
    check_exposure(Settings(host=host))
