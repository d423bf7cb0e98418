"""Whom `migrate` works as."""

import pytest
from django.conf import settings as django_settings
from django.db import ProgrammingError, connection, transaction
from pytest_django.fixtures import Settings

from checkout.models import Checkout, Customer
from config import roles
from config.lib import clock
from portal import tasks
from portal.models import CheckoutNote
from tests.portal import people

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


@pytest.mark.django_db
def test_the_service_deletes_notes_on_people_who_are_erased_and_changes_none(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are append-only, and the only such rows that the service removes itself."""
    assert captured.lead_id is not None
    user = people.join(captured.merchant)
    CheckoutNote.objects.create(merchant=captured.merchant, checkout_uuid=captured.pk, user=user, text="Hm.")
    Customer.objects.filter(pk=captured.lead_id).update(phone=None, name="", erased_at=clock.now())
    service = django_settings.DATABASES["default"] | {"USER": "a_clerk", "PASSWORD": "of-a-clerk"}
    monkeypatch.setitem(django_settings.DATABASES, "default", service)
    roles.grant("default")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE a_clerk")
        for forbidden in ("UPDATE portal_checkoutnote SET text = ''", "DELETE FROM checkout_change"):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                cursor.execute(forbidden)
        tasks.delete_notes()
        cursor.execute("RESET ROLE")
    assert not CheckoutNote.objects.exists()
