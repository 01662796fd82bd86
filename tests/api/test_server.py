"""The server in its process."""

import gc

from app.wiring import Services
from tests.conftest import serving


async def test_what_existed_when_a_server_began_is_collected_after_its_end(services: Services) -> None:
    async with serving(services):
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
