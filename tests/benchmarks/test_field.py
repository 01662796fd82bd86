"""Each case of the field, judged by the doors of a real service with its worker: a right answer has no fault."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.settings import Settings
from benchmarks import field
from benchmarks.stage import service
from tests.conftest import data_folder, store_database


@pytest.fixture(scope="module")
def field_address(
    server_url: str, store_template: str, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a service process on a store of its own."""
    data = data_folder(tmp_path_factory.mktemp("field"), model_folder)
    with store_database(server_url, store_template) as url:
        settings = replace(Settings(), database_url=url, data_dir=data, log_level="error")
        with service(settings) as (address, _):
            yield address


@pytest.mark.parametrize("number", sorted(field.CASES))
@pytest.mark.usefixtures("shared_data")
@pytest.mark.test_all("benchmarks")
def test_a_case_of_the_field_is_right(number: str, field_address: str) -> None:
    if not field.INPUTS.is_dir():
        pytest.skip(f"the inputs are not at {field.INPUTS}")
    assert field.judged(field_address, [number]) == {number: []}
