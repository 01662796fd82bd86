"""The workspace and the language of calls that name none."""

from dataclasses import replace

import pytest

from app.errors import ConfigurationError
from app.settings import Settings
from app.wiring import open_services


@pytest.mark.parametrize(
    ("name", "value"), [("workspace", "a b"), ("workspace", "x" * 65), ("workspace", ""), ("language", "klingonese")]
)
async def test_a_wrong_default_is_refused_at_once_and_by_its_own_name(
    settings: Settings, name: str, value: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^PRIORS_{name.upper()}"):
        async with open_services(replace(settings, **{name: value})):  # type: ignore[arg-type]  # names of settings
            pass
