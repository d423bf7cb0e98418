import zoneinfo

import pytest

from config.lib import clock


@pytest.mark.rule("create.custom_data")
def test_zones_are_known_on_a_machine_that_has_none() -> None:
    try:
        zoneinfo.reset_tzpath([])
        assert {"UTC", "Europe/London", "America/Argentina/Ushuaia"} <= clock.zone_names.__wrapped__()
    finally:
        zoneinfo.reset_tzpath()
