"""Refunds can be partial, can be pending, and can fail after they succeeded. Their limit is the captured amount."""

from typing import Any

import pytest
import stripe as library
from stripe import Charge, PaymentIntent, StripeClient

from tests.payments.stripe_peer.remote import Remote


def _paid(stripe: StripeClient, card: str = "pm_card_visa") -> PaymentIntent:
    given: Any = {"amount": 2000, "currency": "usd", "allowed_payment_method_types": ["card"]}
    return stripe.v1.payment_intents.create(given | {"payment_method": card, "confirm": True})


def _charge(stripe: StripeClient, intent: PaymentIntent) -> Charge:
    return stripe.v1.charges.retrieve(str(intent.latest_charge))


def _refused(stripe: StripeClient, given: Any) -> library.InvalidRequestError:
    before = len(stripe.v1.refunds.list().data)
    with pytest.raises(library.InvalidRequestError) as refused:
        stripe.v1.refunds.create(given)
    assert len(stripe.v1.refunds.list().data) == before
    return refused.value


def test_in_parts_until_the_whole_amount_is_refunded(stripe: StripeClient) -> None:
    paid = _paid(stripe)
    first = stripe.v1.refunds.create({"payment_intent": paid.id, "amount": 500, "metadata": {"part": "1"}})
    assert (first.status, first.amount, first.charge) == ("succeeded", 500, paid.latest_charge)
    assert _refused(stripe, {"payment_intent": paid.id, "amount": 1501}).param == "amount"
    rest = stripe.v1.refunds.create({"charge": str(paid.latest_charge)})
    assert (rest.amount, _charge(stripe, paid).refunded) == (1500, True)
    assert _refused(stripe, {"payment_intent": paid.id}).code == "charge_already_refunded"
    listed = stripe.v1.refunds.list({"payment_intent": paid.id}).data
    assert {row.id for row in listed} == {rest.id, first.id} and len(listed) == 2
    entry = stripe.v1.balance_transactions.retrieve(str(first.balance_transaction))
    assert (entry.amount, entry.type, entry.source) == (-500, "refund", first.id)


def test_only_what_was_taken(stripe: StripeClient) -> None:
    given: Any = {
        "amount": 2000,
        "currency": "usd",
        "capture_method": "manual",
        "payment_method": "pm_card_visa",
    }
    held = stripe.v1.payment_intents.create(given | {"confirm": True, "return_url": "https://shop.example"})
    assert _refused(stripe, {"payment_intent": held.id}).code == "payment_intent_unexpected_state"
    assert _refused(stripe, {"charge": str(held.latest_charge)}).param == "charge"
    assert _refused(stripe, {"amount": 5}).code == "parameter_missing"
    assert _refused(stripe, {"payment_intent": held.id, "reason": "mood"}).param == "reason"


def test_pending_and_later_succeeded(peer: Remote, stripe: StripeClient) -> None:
    refund = stripe.v1.refunds.create({"payment_intent": _paid(stripe, "pm_card_pendingRefund").id})
    assert refund.status == "pending"
    peer.switch("settle_refunds")
    assert stripe.v1.refunds.retrieve(refund.id).status == "succeeded"


def test_succeeded_and_later_failed(peer: Remote, stripe: StripeClient) -> None:
    paid = _paid(stripe, "pm_card_refundFail")
    refund = stripe.v1.refunds.create({"payment_intent": paid.id})
    assert refund.status == "succeeded"
    peer.switch("settle_refunds")
    failed = stripe.v1.refunds.retrieve(refund.id, {"expand": ["failure_balance_transaction"]})
    entry: Any = failed.failure_balance_transaction
    assert (failed.status, failed.failure_reason, entry.amount) == (
        "failed",
        "expired_or_canceled_card",
        2000,
    )
    assert _charge(stripe, paid).amount_refunded == 0
    assert stripe.v1.events.list({"type": "refund.failed"}).data[0].data.object["id"] == refund.id


@pytest.mark.parametrize(
    ("reason", "has_line"), [("processing", True), ("charge_pending", True), ("insufficient_funds", False)]
)
def test_that_is_pending_has_a_reason_and_for_some_reasons_a_balance_line(
    peer: Remote, stripe: StripeClient, reason: str, has_line: bool
) -> None:
    peer.switch("pending_refund", reason=reason)
    refund = stripe.v1.refunds.create({"payment_intent": _paid(stripe).id, "amount": 500})
    assert (refund.status, refund.pending_reason) == ("pending", reason)
    assert (refund.balance_transaction is not None) == has_line
    peer.switch("end_refund", refund=refund.id, status="succeeded")
    ended = stripe.v1.refunds.retrieve(refund.id)
    assert ended.status == "succeeded" and ended.balance_transaction is not None


@pytest.mark.parametrize(
    ("status", "reason"), [("failed", "expired_or_canceled_card"), ("canceled", "merchant_request")]
)
def test_that_was_settled_returns_to_the_balance(
    peer: Remote, stripe: StripeClient, status: str, reason: str
) -> None:
    paid = _paid(stripe)
    refund = stripe.v1.refunds.create({"payment_intent": paid.id, "amount": 500})
    peer.switch("end_refund", refund=refund.id, status=status)
    ended = stripe.v1.refunds.retrieve(refund.id, {"expand": ["failure_balance_transaction"]})
    line: Any = ended.failure_balance_transaction
    assert (ended.status, ended.failure_reason, line.amount) == (status, reason, 500)
    assert _charge(stripe, paid).amount_refunded == 0
    heard = {row.type for row in stripe.v1.events.list().data}
    assert {"refund.updated", "charge.refund.updated"} <= heard
    assert ("refund.failed" in heard) == (status == "failed")


def test_that_fails_before_it_withdrew_money_returns_no_money(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("pending_refund", reason="insufficient_funds")
    refund = stripe.v1.refunds.create({"payment_intent": _paid(stripe).id})
    peer.switch("end_refund", refund=refund.id, status="failed")
    ended = stripe.v1.refunds.retrieve(refund.id)
    assert (ended.status, ended.balance_transaction) == ("failed", None)
    assert "failure_balance_transaction" not in ended.to_dict()


def test_of_an_account_in_another_currency_has_its_line_in_that(peer: Remote, stripe: StripeClient) -> None:
    peer.switch("settle_in", currency="eur", rate=0.9)
    refund = stripe.v1.refunds.create({"payment_intent": _paid(stripe).id, "amount": 500})
    line = stripe.v1.balance_transactions.retrieve(str(refund.balance_transaction))
    assert (refund.currency, refund.amount) == ("usd", 500)
    assert (line.currency, line.amount, line.exchange_rate) == ("eur", -450, 0.9)
