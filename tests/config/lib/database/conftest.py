from collections.abc import Iterator

import pytest

from tests.config.lib.database.standby import Standby, named, running


@pytest.fixture(scope="session")
def one_standby(django_db_setup: None) -> Iterator[Standby]:
    with running() as found:
        yield found


@pytest.fixture
def standby(one_standby: Standby, transactional_db: None) -> Iterator[Standby]:
    """Yield a configured replica that has caught up with the primary."""
    with named(one_standby.url):
        one_standby.catch_up()
        yield one_standby
        # An earlier test that failed can have left the replica stopped.
        if not one_standby.is_running:
            one_standby.start()
        one_standby.resume()
