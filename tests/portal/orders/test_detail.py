from collections.abc import Callable

import pytest
from django.test import Client

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
        assert "checkout.authorized is not sent again" in words and "Your endpoint failed 4 times." in words
        assert "Capture the order through the API by" in words

    @pytest.mark.rule("doubt.capture_before", "doubt.capture_after")
    def test_says_that_the_outcome_of_a_capture_is_unknown(self, client: Client, held: Checkout) -> None:
        leave_in_doubt(held)
        words = client.get(page_of(held)).content.decode()
        assert "Your capture is not decided yet" in words and "the outcome is unknown" in words
        assert "The hold ends automatically, unless your capture succeeds" in words
        assert "Time to capture" not in words and "Your server gets no" not in words

    def test_says_that_no_server_is_notified(self, client: Client, held: Checkout) -> None:
        words = client.get(page_of(held)).content.decode()
        assert "Your server gets no checkout.authorized for this hold" in words

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
