"""Each role can give an API key only certain scopes, so that no role gains a right through a key.

The tests use each key and check what it can do.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from checkout.models import Checkout, Refund
from config.lib import clock
from payments.models import Merchant
from portal import keys, team
from portal.models import ApiClient, Membership, OutboundEmail, Role
from tests.conftest import Api
from tests.portal import stage
from tests.portal.people import mails, secret_in
from webhooks import outbox
from webhooks.models import Event, EventType, Subscription

pytestmark = pytest.mark.django_db
EMAIL = "mo@customer.example"
# This list repeats the portal's table, so that the tests find errors in it.
MAY_GIVE = {
    "checkouts:read": "owner admin developer",
    "checkouts:write": "owner admin developer",
    "refunds:write": "owner admin",
    "webhooks:read": "owner admin developer",
    "webhooks:write": "owner admin developer",
    "customers:read": "owner",
}
OTHER_URL = "http://127.0.0.1:9/elsewhere"


def order_of(merchant: Merchant) -> Checkout:
    return Checkout.objects.get(merchant=merchant)


def reads_orders(key: Api) -> bool:
    return str(order_of(key.merchant).pk) in key.get("checkouts").content.decode()


def creates_an_order(key: Api) -> bool:
    key.post("checkouts", body_of_order())
    return Checkout.objects.filter(merchant=key.merchant).count() == 2


def body_of_order() -> dict[str, Any]:
    item = {"item_ref": "t", "name": "Ticket", "quantity": 1, "unit_price": 900, "currency": "GBP"}
    return {
        "merchant_order_id": "A-2",
        "total_amount": 900,
        "currency": "GBP",
        "return_url": "https://shop.example/back",
        "cancel_url": "https://shop.example/cancel",
        "items": [item],
    }


def refunds(key: Api) -> bool:
    key.post(f"checkouts/{order_of(key.merchant).pk}/refund", {"merchant_refund_ref": "R-1"})
    return Refund.objects.exists()


def reads_the_log(key: Api) -> bool:
    return "deliveries" in key.get("webhooks/deliveries").content.decode()


def moves_the_endpoint(key: Api) -> bool:
    key.post("webhooks/subscription", {"url": OTHER_URL, "event_types": ["*"]})
    return Subscription.objects.get(merchant=key.merchant).url == OTHER_URL


def reads_customers(key: Api) -> bool:
    return EMAIL in key.get("events").content.decode()


EFFECTS: dict[str, Callable[[Api], bool]] = {
    "checkouts:read": reads_orders,
    "checkouts:write": creates_an_order,
    "refunds:write": refunds,
    "webhooks:read": reads_the_log,
    "webhooks:write": moves_the_endpoint,
    "customers:read": reads_customers,
}


@pytest.fixture
def order(acme: Merchant) -> Checkout:
    """Return a captured order whose customer has opted in. Its merchant has an approved endpoint."""
    stage.saved(acme)
    captured = stage.captured(acme)
    opt_in(acme)
    return captured


def opt_in(merchant: Merchant) -> None:
    payload = {"customer": {"email": EMAIL}}
    outbox.emit(merchant, EventType.OPTED_IN, payload, at=clock.now())
    Event.objects.update(written_at=F("written_at") - timedelta(seconds=5))


def known_secret(key: ApiClient, page: object) -> Api:
    """Return an API client that uses the key's secret, which the page shows."""
    return Api(key.merchant, keys.NewClient(key, secret_in(page)))


def made_by(role: Role, merchant: Merchant, scope: str) -> Api | None:
    """Create a key with this scope in the portal, as a person with this role.

    Return None if the portal refuses the key.
    """
    scopes = [scope, "webhooks:read"] if scope == "customers:read" else [scope]
    browser = stage.browser(stage.person(merchant, role))
    page = browser.post("/portal/keys/new", {"name": "Mine", "scopes": scopes}, follow=True)
    made = ApiClient.objects.first()
    assert bool(made) == ("sk_" in page.content.decode())
    return known_secret(made, page) if made else None


@pytest.mark.rule("token.grants", "token.personal")
@pytest.mark.parametrize("scope", MAY_GIVE)
@pytest.mark.parametrize("role", Role)
class TestScope:
    def test_works_in_a_new_key_of_those_roles_only(
        self, acme: Merchant, order: Checkout, role: Role, scope: str
    ) -> None:
        key = made_by(role, acme, scope)
        assert (key is not None) == (role in MAY_GIVE[scope].split())
        assert key is None or EFFECTS[scope](key)

    def test_gives_a_secret_at_rotation_to_those_roles_only(
        self, acme: Merchant, order: Checkout, role: Role, scope: str
    ) -> None:
        scopes = [scope, "webhooks:read"] if scope == "customers:read" else [scope]
        known = keys.create_client(acme, "Ours", scopes).client
        browser = stage.browser(stage.person(acme, role))
        page = browser.post(f"/portal/keys/{known.pk}/rotate", follow=True)
        is_shown = "sk_" in page.content.decode()
        assert is_shown == (role in MAY_GIVE[scope].split())
        assert not is_shown or EFFECTS[scope](known_secret(known, page))

    @pytest.mark.parametrize("verb", ["stop", "revoke"])
    def test_protects_a_key_from_roles_that_cannot_create_it(
        self, acme: Merchant, role: Role, scope: str, verb: str
    ) -> None:
        known = keys.create_client(acme, "Ours", [scope]).client
        ApiClient.objects.update(previous_secret="client_secret$0")
        stage.browser(stage.person(acme, role)).post(f"/portal/keys/{known.pk}/{verb}")
        is_untouched = ApiClient.objects.filter(revoked_at=None).exclude(previous_secret="").exists()
        assert is_untouched == (role not in MAY_GIVE[scope].split())


class TestRole:
    def test_is_checked_when_the_key_is_created(self, acme: Merchant) -> None:
        """If a person's role changes before the form arrives, scopes that only the old role allows are refused."""
        admin = stage.person(acme, Role.ADMIN)
        Membership.objects.filter(pk=admin.pk).update(role=Role.DEVELOPER)
        with pytest.raises(keys.ScopeNotAllowed):
            keys.create(admin, "Mine", ["refunds:write"])
        assert not ApiClient.objects.exists()


@pytest.mark.rule("portal.lost_rights")
class TestLostRights:
    def listed(self) -> list[str]:
        return [mail.body for mail in mails() if "still knows" in mail.subject]

    def test_name_the_persons_keys_to_the_owners(self, acme: Merchant) -> None:
        owner = stage.person(acme, Role.OWNER, "lea@acme.example")
        admin = stage.person(acme, Role.ADMIN, "ana@acme.example")
        mine = keys.create(admin, "Till", ["checkouts:read"]).client
        keys.create(owner, "Office", ["checkouts:read"])
        team.change_role(owner, admin.pk, Role.DEVELOPER)
        (body,) = self.listed()
        assert "ana@acme.example" in body and f"Till ({mine.client_id})" in body and "Office" not in body
        assert "sk_" not in body

    def test_of_a_person_who_leaves_include_keys_that_they_rotated(self, acme: Merchant) -> None:
        owner = stage.person(acme, Role.OWNER)
        developer = stage.person(acme, Role.DEVELOPER)
        key = keys.create(owner, "Shop", ["checkouts:read"]).client
        keys.rotate(developer, key.pk)
        team.remove(owner, developer.pk)
        assert key.client_id in self.listed()[0]

    def test_exclude_keys_that_a_person_no_longer_knows(self, acme: Merchant) -> None:
        owner, admin = stage.person(acme, Role.OWNER), stage.person(acme, Role.ADMIN)
        key = keys.create(admin, "Shop", ["checkouts:read"]).client
        keys.rotate(owner, key.pk)
        keys.stop_previous(owner, key.pk)
        team.remove(owner, admin.pk)
        assert not OutboundEmail.objects.filter(kind="keys_of_person").exists()

    def test_are_not_reported_for_a_person_who_gains_rights(self, acme: Merchant) -> None:
        owner, developer = stage.person(acme, Role.OWNER), stage.person(acme, Role.DEVELOPER)
        keys.create(developer, "Shop", ["checkouts:read"])
        team.change_role(owner, developer.pk, Role.ADMIN)
        assert not OutboundEmail.objects.filter(kind="keys_of_person").exists()
