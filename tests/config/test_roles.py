"""The database role that `migrate` runs under, and the privileges of the service's role."""

from io import StringIO

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction
from pytest_django.fixtures import Settings

from checkout.models import Checkout, Customer
from config import roles
from config.lib import clock, crypto
from hosted_page.models import OptIn
from payments.models import Merchant
from portal import tasks
from portal.models import CheckoutNote
from tests.hosted_page.privacy.persons import EMAIL, tick
from tests.portal import people

pytestmark = pytest.mark.rule("environment.roles")


def test_the_owner_connects_with_separate_connection_settings(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner never connects with the service's port and password, because they can belong to a pooler."""
    service = connection.settings_dict | {"HOST": "pgbouncer", "PORT": "6432", "PASSWORD": "of the service"}
    monkeypatch.setattr(connection, "settings_dict", service)
    settings.DATABASE_OWNER = {"USER": "owner", "HOST": "postgres", "OPTIONS": {}}
    with roles.as_owner(connection) as is_owner:
        wanted = connection.get_connection_params()
    assert is_owner and (wanted["user"], wanted["host"]) == ("owner", "postgres")
    assert not {"port", "password"} & set(wanted)


def grant_a_clerk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a role with the privileges of the service."""
    service = django_settings.DATABASES["default"] | {"USER": "a_clerk", "PASSWORD": "of-a-clerk"}
    monkeypatch.setitem(django_settings.DATABASES, "default", service)
    roles.grant("default")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("table", "verbs"),
    [
        ("payments_merchant", "SELECT INSERT UPDATE"),
        ("payments_payment", "SELECT INSERT UPDATE"),
        ("checkout_checkout", "SELECT INSERT UPDATE"),
        ("checkout_customer", "SELECT INSERT UPDATE"),
        ("checkout_paymentrequest", "SELECT INSERT UPDATE DELETE"),
        ("checkout_change", "SELECT INSERT"),
        ("payments_posting", "SELECT INSERT"),
        ("portal_auditentry", "SELECT INSERT"),
    ],
)
def test_the_service_has_the_rights_that_each_tables_triggers_allow(
    table: str, verbs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role may update rows that other rows refer to, but may not delete them."""
    grant_a_clerk(monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(verb, ' ' ORDER BY n) FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])"
            " WITH ORDINALITY v(verb, n) WHERE has_table_privilege('a_clerk', %s, verb)",
            [table],
        )
        assert cursor.fetchone() == (verbs,)


@pytest.mark.django_db
def test_the_service_can_delete_but_not_change_notes_on_erased_people(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notes are the only append-only rows that the service's role may delete."""
    assert captured.lead_id is not None
    user = people.join(captured.merchant)
    CheckoutNote.objects.create(merchant=captured.merchant, checkout_uuid=captured.pk, user=user, text="Hm.")
    Customer.objects.filter(pk=captured.lead_id).update(phone=None, name="", erased_at=clock.now())
    grant_a_clerk(monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE a_clerk")
        for forbidden in ("UPDATE portal_checkoutnote SET text = ''", "DELETE FROM checkout_change"):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                cursor.execute(forbidden)
        tasks.delete_notes()
        cursor.execute("RESET ROLE")
    assert not CheckoutNote.objects.exists()


@pytest.mark.django_db
@pytest.mark.rule("secret.keys")
def test_the_service_can_rehash_an_opt_in_but_not_empty_it(
    captured: Checkout, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    Merchant.objects.filter(pk=captured.merchant_id).update(opt_in_enabled=True)
    tick(Checkout.objects.select_related("merchant").get(pk=captured.pk), None)
    settings.LOOKUP_KEY, settings.LOOKUP_KEY_FALLBACKS = "another key", [settings.LOOKUP_KEY]
    grant_a_clerk(monkeypatch)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL ROLE a_clerk")
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            cursor.execute("UPDATE hosted_page_optin SET email_digest = ''")
        call_command("rotate_keys", stdout=StringIO())
        cursor.execute("RESET ROLE")
    assert OptIn.objects.get().email_digest == crypto.keyed_digest("e-mail", EMAIL)
