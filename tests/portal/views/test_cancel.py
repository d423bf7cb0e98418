from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from checkout import cancellations, captures
from checkout.models import Change, Checkout
from config.lib import clock
from payments.models import Merchant, Operation
from portal.models import AuditEntry, Membership, Role
from tests import factories
from tests.factories import CAUSE
from tests.portal import stage
from webhooks.models import Event, EventType

pytestmark = pytest.mark.django_db


@pytest.fixture
def helper(acme: Merchant) -> Membership:
    return stage.person(acme, Role.SUPPORT)


@pytest.fixture
def client(helper: Membership) -> Client:
    return stage.browser(helper)


def page_of(checkout: Checkout) -> str:
    return f"/portal/checkouts/{checkout.pk}"


def cancel(client: Client, checkout: Checkout, **facts: str) -> Any:
    return client.post(f"{page_of(checkout)}/cancel", facts, follow=True)


@pytest.mark.rule("cancel.portal")
class TestCancel:
    def test_asks_first_in_place_or_on_its_own_page(self, client: Client, held: Checkout) -> None:
        words = client.get(f"{page_of(held)}/cancel").content.decode()
        assert (
            "Cancel this order of £90.00?" in words
            and "If your server captures the order before you confirm" in words
        )
        assert "Timeline" in words, "without script it is a page around the order"
        part = client.get(
            f"{page_of(held)}/cancel", headers={"HX-Request": "true", "HX-Target": "question"}
        ).content.decode()
        assert part.lstrip().startswith("<form") and "Timeline" not in part
        held.refresh_from_db()
        assert held.status == "authorized"

    def test_names_the_event_only_if_the_server_gets_it(self, client: Client, held: Checkout) -> None:
        factories.subscribe(held.merchant, url=stage.URL, event_types=["checkout.authorized"])
        assert "checkout.voided" not in client.get(f"{page_of(held)}/cancel").content.decode()
        factories.subscribe(held.merchant, url=stage.URL, event_types=["*"])
        assert "checkout.voided with the reason" in client.get(f"{page_of(held)}/cancel").content.decode()

    def test_releases_the_hold_once_and_tells_the_server(
        self, client: Client, helper: Membership, held: Checkout
    ) -> None:
        factories.subscribe(held.merchant, url=stage.URL, event_types=["*"])
        for _ in range(2):
            words = cancel(client, held, reason="Sold out").content.decode()
            assert "you cancelled" in words and "Your reason: “Sold out”." in words
            assert f"By {helper.user.email}" in words and "cannot be cancelled" not in words
        held.refresh_from_db()
        assert (held.status, held.void_reason, held.cancel_note) == (
            "voided",
            "merchant_cancel",
            "Sold out",
        )
        assert Event.objects.filter(type=EventType.VOIDED).count() == 1
        assert Operation.objects.filter(kind="void").count() == 1
        entry = AuditEntry.objects.get(action="cancelled")
        assert entry.facts == {"checkout": str(held.pk), "order": held.merchant_order_id}

    def test_ends_an_unpaid_order(self, client: Client, unpaid: Checkout) -> None:
        assert (
            "After you cancel it, it can no longer be paid."
            in client.get(f"{page_of(unpaid)}/cancel").content.decode()
        )
        assert "you cancelled" in cancel(client, unpaid).content.decode()
        assert Change.objects.get(checkout=unpaid, to="voided").actor.startswith("user:")
        assert AuditEntry.objects.get(action="cancelled").facts["checkout"] == str(unpaid.pk)

    def test_after_a_capture_changes_nothing(self, client: Client, held: Checkout) -> None:
        captures.capture(held.merchant, held.pk, cause=CAUSE)
        for answer in (client.get(f"{page_of(held)}/cancel", follow=True), cancel(client, held)):
            assert "it stays captured, and you can refund it" in answer.content.decode()
        held.refresh_from_db()
        assert held.status == "captured" and not AuditEntry.objects.filter(action="cancelled").exists()
        part = client.get(f"{page_of(held)}/cancel", headers={"HX-Request": "true", "HX-Target": "question"})
        assert part["HX-Redirect"] == page_of(held), "an open page shows what has happened"

    def test_after_another_cancel_says_so(self, client: Client, held: Checkout) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        assert "had already been cancelled" in cancel(client, held).content.decode()
        assert not AuditEntry.objects.filter(action="cancelled").exists()

    def test_after_the_end_of_the_hold_says_so(self, client: Client, held: Checkout) -> None:
        Checkout.objects.filter(pk=held.pk).update(capture_before=clock.now() - timedelta(seconds=1))
        assert "lapsed" in cancel(client, held).content.decode()
        held.refresh_from_db()
        assert held.void_reason == "auth_expired"

    def test_is_refused_while_a_card_payment_is_in_progress(
        self, client: Client, unpaid: Checkout, in_doubt: Callable[..., Operation]
    ) -> None:
        in_doubt("authorize")
        words = cancel(client, unpaid).content.decode()
        assert "A card payment on this order is under way" in words and "you cancelled" not in words

    def test_keeps_a_typed_reason_that_is_too_long(self, client: Client, held: Checkout) -> None:
        page = cancel(client, held, reason="x" * 256)
        assert page.status_code == 422 and "x" * 256 in page.content.decode()
        held.refresh_from_db()
        assert held.status == "authorized"

    def test_is_offered_only_to_roles_with_the_right(self, client: Client, held: Checkout) -> None:
        assert f"{page_of(held)}/cancel" in client.get(page_of(held)).content.decode()
        viewer = stage.browser(stage.person(held.merchant, Role.VIEWER))
        assert f"{page_of(held)}/cancel" not in viewer.get(page_of(held)).content.decode()
