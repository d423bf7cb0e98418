from collections.abc import Callable

import pytest
from django.test import Client
from django.utils.html import strip_tags

from checkout import cancellations, captures, refunds
from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import Role
from tests import factories, mates
from tests.factories import CAUSE
from tests.outages import leave_in_doubt
from tests.outside import RETURNS, come_back
from tests.portal import people, stage
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.SUPPORT)


def page_of(checkout: Checkout) -> str:
    return f"/portal/checkouts/{checkout.pk}"


def pairs_of(client: Client, checkout: Checkout) -> str:
    """Return the words of the order's page, without tags."""
    return " ".join(strip_tags(client.get(page_of(checkout)).content.decode().replace("<", " <")).split())


@pytest.mark.rule("refund.returned")
@pytest.mark.usefixtures("posted")
def test_a_returned_refund_is_shown_the_same_everywhere(
    client: Client, unpaid: Checkout, pay: Callable[..., Checkout]
) -> None:
    captures.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
    refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
    mates.pump(unpaid.pk, rounds=3)
    for page in ("/portal", "/portal/checkouts", "/portal/refunds", page_of(unpaid)):
        assert "returned" not in client.get(page).content.decode(), page
    come_back()
    order_page = " ".join(client.get(page_of(unpaid)).content.decode().split())
    assert (
        "The customer does not have the money. It is in your balance until the customer gets it."
        in order_page
    )
    assert "Refund returned</span>" in order_page
    assert "Refund returned</span>" in client.get("/portal/checkouts").content.decode()
    for page in ("/portal", "/portal/refunds"):
        words = client.get(page).content.decode()
        assert "The customer does not have this money. Our support pays it." in words, page
    operator = Client()
    people.operate(operator)
    for page in ("/admin/checkout/checkout/", f"/admin/checkout/checkout/{unpaid.pk}/change/"):
        assert "Refund returned</span>" in operator.get(page).content.decode(), page


class TestHeldPage:
    def test_counts_down_and_explains_what_happens_next(self, client: Client, held: Checkout) -> None:
        words = client.get(page_of(held)).content.decode()
        assert "Time to capture" in words and ">left, until " in words and "You have until" in words
        assert "The hold ends automatically, unless your server captures first" in words
        assert 'max="120"' in words

    def test_shows_the_next_attempt(self, client: Client, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        held = stage.hold(factories.checkout(acme))
        words = client.get(page_of(held)).content.decode()
        assert "Attempt 1 to send checkout.authorized" in words and "has failed" not in words
        stage.deliver(acme, 500)
        words = client.get(page_of(held)).content.decode()
        assert "Attempt 2 to send checkout.authorized" in words
        assert "Your endpoint has failed once" in words and "The next attempt is at" in words
        Delivery.objects.update(next_attempt_at=clock.now())
        stage.deliver(acme, 200)
        words = client.get(page_of(held)).content.decode()
        assert "to send" not in words and "has failed" not in words

    def test_says_what_to_do_after_the_last_attempt(self, client: Client, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        held = stage.hold(factories.checkout(acme))
        for _ in range(3):
            Delivery.objects.update(next_attempt_at=clock.now())
            stage.deliver(acme, 500)
        assert "The last attempt is at" in client.get(page_of(held)).content.decode()
        Delivery.objects.update(next_attempt_at=clock.now())
        stage.deliver(acme, 500)
        words = client.get(page_of(held)).content.decode()
        assert "checkout.authorized is parked" in words and "Your endpoint failed 4 times." in words
        assert "Fix it and send the event again, or capture the order through the API by" in words
        assert f'href="/portal/deliveries/{Delivery.objects.get().pk}">See the delivery</a>' in words

    @pytest.mark.rule("doubt.capture_before", "doubt.capture_after")
    def test_says_that_the_outcome_of_a_capture_is_unknown(self, client: Client, held: Checkout) -> None:
        leave_in_doubt(held)
        words = client.get(page_of(held)).content.decode()
        assert "Your capture is not decided yet" in words and "the outcome is unknown" in words
        assert "The hold ends automatically, unless your capture succeeds" in words
        assert "Time to capture" not in words and "This hold has no event" not in words

    def test_says_that_no_server_is_notified(self, client: Client, held: Checkout) -> None:
        words = client.get(page_of(held)).content.decode()
        assert "This hold has no event" in words and "you had no endpoint for checkout.authorized" in words
        assert "Check your endpoint" not in words, "support cannot change webhooks"
        owner = stage.browser(stage.person(held.merchant, Role.OWNER))
        assert 'href="/portal/webhooks">Check your endpoint</a>' in owner.get(page_of(held)).content.decode()

    @pytest.mark.parametrize(("status", "is_due"), [("captured", True), ("voided", False)])
    def test_of_a_split_that_ended_without_a_capture_owes_the_lead_nothing(
        self, client: Client, acme: Merchant, unpaid: Checkout, status: str, *, is_due: bool
    ) -> None:
        mates.split(unpaid, 2000, 3000)
        stage.hold(unpaid)
        end = captures.capture if status == "captured" else cancellations.cancel
        end(acme, unpaid.pk, cause=CAUSE)
        words = client.get(page_of(unpaid)).content.decode()
        assert "Mates paid" in words and ("Paid back to the lead" in words) == is_due
        assert ("Hold ended" in words) != is_due

    def test_of_an_unpaid_split_shows_who_is_in_and_what_their_cards_hold(
        self, client: Client, unpaid: Checkout
    ) -> None:
        mates.split(unpaid, 2000, 3000)
        words = pairs_of(client, unpaid)
        assert "Mates 2 Their shares £50.00" in words and "Paid back" not in words
        mates.split(unpaid, 2000, 3000, everyone_first=True)
        assert "The customer pays When the mates are in Mates in 0 of 2" in pairs_of(client, unpaid)
        mates.pay(unpaid.payment_requests.earliest("position"))
        words = pairs_of(client, unpaid)
        assert "Mates in 1 of 2 Held on mates’ cards £20.00 of £50.00" in words
        assert "Paid back" not in words and "Mates paid" not in words


@pytest.mark.rule("cancel.portal", "read.actions")
class TestAvailableActions:
    @pytest.mark.parametrize("status", ["created", "authorized"])
    def test_exclude_cancel_while_a_card_operation_is_open(
        self, acme: Merchant, unpaid: Checkout, pay: Callable[..., Checkout], status: str
    ) -> None:
        owner = stage.browser(stage.person(acme, Role.OWNER))
        unasked = owner.get(page_of(unpaid)).content.decode()
        assert "Cancel the order" in unasked and "<dt>Can be paid until</dt>" in unasked
        if status == "created":
            pay(unpaid, "4000002500003155")
        else:
            leave_in_doubt(pay(unpaid))
        words = owner.get(page_of(unpaid)).content.decode()
        assert "Cancel the order" not in words and 'hx-trigger="every 2s"' in words
        asked = owner.get(f"{page_of(unpaid)}/cancel", follow=True).content.decode()
        assert "A card payment on this order is under way" in asked
