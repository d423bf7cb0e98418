"""Mails to owners about problems. Each problem is reported once, and without a problem no mail is sent."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db.models import F, Value
from django.db.models.functions import Concat
from pytest_django.fixtures import Settings

from checkout import refunds
from checkout.models import Change, Checkout, PaymentRequest, Refund
from checkout.remedies import settling_outside
from config.lib import clock
from payments import money, operator_stops
from payments.models import Dispute, Merchant
from portal.mail import trouble_mails
from portal.models import Membership, OutboundEmail
from tests import mates, outside
from tests.factories import CAUSE
from tests.outside import decide, dispute
from tests.portal import people, stage
from tests.portal.mail.conftest import look_and_send
from webhooks import subscriptions
from webhooks.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.mails")]


def test_reports_an_endpoint_that_fails_for_an_hour_once(owner: Membership) -> None:
    subscription = subscriptions.read_subscription(owner.merchant)
    endpoint = Endpoint.objects.create(
        subscription=subscription, failing_since=clock.now(), last_error="HTTP 500"
    )
    assert look_and_send() == []
    endpoint.failing_since = clock.now() - timedelta(hours=1, seconds=1)
    endpoint.save()
    (sent,) = look_and_send()
    assert sent.to == ["lea@acme.example"] and "HTTP 500" in sent.body and "for an hour" in sent.subject
    assert look_and_send() == []


def test_reports_parked_deliveries_once_a_day(owner: Membership) -> None:
    stage.parked(owner.merchant)
    (sent,) = look_and_send()
    assert "1 delivery is parked" in sent.body and "/portal/deliveries?outcome=parked" in sent.body
    assert sent.subject.endswith(": a delivery is parked")
    stage.parked(owner.merchant)
    assert look_and_send() == []
    OutboundEmail.objects.update(key="yesterday")
    (sent,) = look_and_send()
    assert "2 deliveries are parked" in sent.body


def test_reports_deliveries_parked_after_the_mail_on_the_next_day(owner: Membership) -> None:
    stage.parked(owner.merchant)
    assert len(look_and_send()) == 1
    for _ in range(2):
        stage.parked(owner.merchant)
    let_pass(hours=20)
    (sent,) = look_and_send()
    assert "3 deliveries are parked" in sent.body
    let_pass(hours=24)
    assert look_and_send() == [], "of none twice"


@pytest.mark.rule("event.test")
def test_does_not_count_a_parked_test_event(owner: Membership) -> None:
    Delivery.objects.filter(pk=stage.parked(owner.merchant).pk).update(event_type="webhook.test")
    assert look_and_send() == []
    stage.parked(owner.merchant)
    (sent,) = look_and_send()
    assert "1 delivery is parked" in sent.body


def test_reports_everything_in_one_mail_after_an_outage_of_the_mail_server(
    owner: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.parked(owner.merchant)
    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", Mock(side_effect=ConnectionRefusedError))
        assert look_and_send() == []
    OutboundEmail.objects.update(key="yesterday", next_try_at=clock.now())
    stage.parked(owner.merchant)
    (sent,) = look_and_send()
    assert "2 deliveries are parked" in sent.body
    assert look_and_send() == []


def let_pass(*, hours: int) -> None:
    """Simulate that hours pass: move the times of all mails and parked deliveries back.

    The key of each mail also changes, so that the same mail can be sent again.
    """
    ago = timedelta(hours=hours)
    OutboundEmail.objects.update(key=Concat(F("key"), Value(" before")), sent_at=F("sent_at") - ago)
    Delivery.objects.update(ended_at=F("ended_at") - ago)


@pytest.mark.parametrize(
    ("reason", "says", "helps"),
    [
        (
            "card_closed",
            "The card’s account is closed.",
            "Pay the customer another way, or write to",
        ),
        ("insufficient_balance", "Insufficient balance.", "Try again"),
        ("refused", "", "Try again"),
        (None, "", "Try again"),
    ],
)
def test_reports_a_failed_refund_and_its_remedy(
    owner: Membership, captured: Checkout, reason: str | None, says: str, helps: str
) -> None:
    refunds.accept(owner.merchant, captured.pk, ref="r-1", cause=CAUSE)
    Refund.objects.update(status="failed", failure_reason=reason)
    Checkout.objects.filter(pk=captured.pk).update(status="captured")
    Change.objects.create(
        checkout=captured, origin="refunding", to="captured", actor="pump", created_at=clock.now()
    )
    (sent,) = look_and_send()
    assert "£90.00" in sent.body and str(captured.pk) in sent.body
    assert says in sent.body and helps in sent.body
    assert (
        ("Try again" in sent.body)
        == (helps == "Try again")
        != ("quote r-1. Sending the refund again" in sent.body)
    )
    assert look_and_send() == []


@pytest.fixture
def returned(refunded: Checkout, posted: list[int]) -> Checkout:
    """An order whose refund settled, but was then returned by the card's bank."""
    outside.come_back()
    return refunded


def test_reports_a_returned_refund_once(owner: Membership, returned: Checkout) -> None:
    (sent,) = look_and_send()
    assert sent.subject.endswith(": a refund was returned")
    assert returned.merchant_order_id in sent.body and str(returned.pk) in sent.body
    assert "Don’t refund the order yourself." in sent.body
    assert look_and_send() == []


def test_does_not_report_a_returned_refund_that_is_no_longer_owed(
    owner: Membership, returned: Checkout
) -> None:
    settling_outside.settle_outside(outside.returned(returned).pk, note="By bank transfer", cause=CAUSE)
    assert look_and_send() == []


def test_reports_lost_holds_once_a_day(owner: Membership, at: Any) -> None:
    at("lapsed")
    (sent,) = look_and_send()
    assert "1 hold lapsed" in sent.body and "The customer was not charged." in sent.body
    assert look_and_send() == []
    OutboundEmail.objects.update(key="yesterday")
    assert look_and_send() == [], "of none twice"
    Checkout.objects.update(updated_at=clock.now())
    assert look_and_send() == [], "nor once its hold is released"


def test_reports_holds_lost_after_the_mail_on_the_next_day(
    owner: Membership, at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"kind": "holds_lost", "key": "yesterday", "sent_at": clock.now()}
    OutboundEmail.objects.create(merchant=owner.merchant, **told)
    at("lapsed")
    # The hold lapsed longer ago than LATELY.
    monkeypatch.setattr(trouble_mails, "LOOK_BACK", timedelta())
    (sent,) = look_and_send()
    assert "1 hold lapsed" in sent.body


@pytest.mark.rule("dispute.told")
@pytest.mark.usefixtures("posted")
def test_reports_a_dispute_with_remedy_and_deadline(
    owner: Membership, captured: Checkout, settings: Settings
) -> None:
    settings.SUPPORT_EMAIL = "help@checkout.example"
    found = dispute(captured.payment)
    Dispute.objects.update(respond_by=datetime(2026, 12, 4, 18, tzinfo=UTC))
    (sent,) = look_and_send()
    assert sent.to == ["lea@acme.example"] and sent.subject.endswith("a customer disputes £90.00")
    assert "Send your evidence to help@checkout.example by Fri 4 December, 18:00, with" in sent.body
    assert f"with the reference {found.reference}:" in sent.body and "ending 4242" in sent.body
    assert captured.merchant_order_id in sent.body and f"/portal/checkouts/{captured.pk}" in sent.body
    assert look_and_send() == []
    decide(found, is_won=False)
    (sent,) = look_and_send()
    assert sent.subject.endswith("the dispute over £90.00 is lost") and "No refund is possible" in sent.body
    assert look_and_send() == []


@pytest.mark.rule("dispute.told")
@pytest.mark.usefixtures("posted")
def test_reports_a_dispute_that_is_won(owner: Membership, captured: Checkout) -> None:
    found = dispute(captured.payment)
    trouble_mails.queue_trouble_mails(clock.now())
    decide(found, is_won=True)
    (sent,) = look_and_send()
    assert sent.subject.endswith("is won") and "given the money back to you" in sent.body


@pytest.mark.rule("dispute.told")
@pytest.mark.usefixtures("posted")
def test_reports_each_decision_of_an_appealed_dispute(owner: Membership, captured: Checkout) -> None:
    found = dispute(captured.payment)
    decide(found, is_won=True)
    (won,) = look_and_send()
    decide(found, is_won=False)
    (lost,) = look_and_send()
    assert won.subject.endswith("is won") and lost.subject.endswith("is lost")
    assert look_and_send() == []


@pytest.mark.rule("dispute.told", "dispute.lost")
@pytest.mark.usefixtures("posted")
def test_says_after_a_mates_lost_dispute_that_the_rest_can_be_refunded(
    owner: Membership, order: Checkout, shares: list[PaymentRequest]
) -> None:
    mates.pay(shares[0])
    mates.settled(shares[0])
    shares[0].refresh_from_db()
    found = dispute(shares[0].payment)
    (sent,) = look_and_send()
    amount = money.display(shares[0].amount, order.currency)
    assert sent.subject.endswith(f"a mate disputes {amount}")
    assert f"A mate disputes {amount} of order {order.merchant_order_id} (" in sent.body
    decide(found, is_won=False)
    (sent,) = look_and_send()
    assert "The mate keeps the money.\nYou can still refund the rest of the order." in sent.body


def test_sends_no_mail_without_a_problem(owner: Membership, captured: Checkout) -> None:
    assert look_and_send() == []


def test_reports_a_suspension_while_it_lasts(owner: Membership) -> None:
    operator_stops.suspend(owner.merchant, reason="test")
    (sent,) = look_and_send()
    assert "payments are stopped" in sent.subject and "have been stopped since" in sent.body
    assert look_and_send() == []
    operator_stops.resume(owner.merchant, reason="test")
    (sent,) = look_and_send()
    assert "payments work again" in sent.subject and "have worked again since" in sent.body
    operator_stops.suspend(owner.merchant, reason="again")
    trouble_mails.queue_trouble_mails(clock.now())
    operator_stops.resume(owner.merchant, reason="test")
    assert look_and_send() == [], "it is over before the mail is sent"


def test_reports_a_stop_of_all_merchants_to_each_in_batches(
    owner: Membership, rival: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble_mails, "STOPS_PER_RUN", 1)
    other = people.join(rival, email="rae@rival.example")
    operator_stops.suspend(None, reason="test")
    sent = [*look_and_send(), *look_and_send()]
    assert sorted(mail.to[0] for mail in sent) == sorted([owner.user.email, other.email])
    assert all("have been stopped since" in mail.body for mail in sent)
    assert look_and_send() == [], "each is told once"
    operator_stops.suspend(rival, reason="its own")
    assert len(look_and_send()) == 1
    operator_stops.resume(None, reason="test")
    (sent_again,) = look_and_send()
    assert sent_again.to == [owner.user.email] and "have worked again since" in sent_again.body
    assert look_and_send() == [], "the other one's own stop continues"


def test_does_not_report_that_payments_work_while_all_are_stopped(owner: Membership) -> None:
    operator_stops.suspend(owner.merchant, reason="test")
    assert len(look_and_send()) == 1
    operator_stops.suspend(None, reason="test")
    operator_stops.resume(owner.merchant, reason="test")
    assert look_and_send() == []
    operator_stops.resume(None, reason="test")
    (sent,) = look_and_send()
    assert "payments work again" in sent.subject
