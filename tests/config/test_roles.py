"""Whom `migrate` works as."""

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from config import roles

pytestmark = pytest.mark.rule("environment.roles")


def test_the_owner_is_asked_for_at_an_address_of_their_own(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service's may be a pooler's: neither its port nor its password is the owner's."""
    service = connection.settings_dict | {"HOST": "pgbouncer", "PORT": "6432", "PASSWORD": "of the service"}
    monkeypatch.setattr(connection, "settings_dict", service)
    settings.DATABASE_OWNER = {"USER": "owner", "HOST": "postgres", "OPTIONS": {}}
    with roles.as_owner(connection) as is_owner:
        wanted = connection.get_connection_params()
    assert is_owner and (wanted["user"], wanted["host"]) == ("owner", "postgres")
    assert not {"port", "password"} & set(wanted)
