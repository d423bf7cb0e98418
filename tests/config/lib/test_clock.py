import zoneinfo

import pytest

from config.lib import clock


@pytest.mark.rule("create.custom_data")
def test_time_zones_are_available_without_a_system_database() -> None:
    try:
        zoneinfo.reset_tzpath([])
        assert {"UTC", "Europe/London", "America/Argentina/Ushuaia"} <= clock.zone_names.__wrapped__()
    finally:
        zoneinfo.reset_tzpath()
