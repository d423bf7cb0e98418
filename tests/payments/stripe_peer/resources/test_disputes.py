"""Disputes are opened, answered with evidence, and decided as Stripe describes."""

from typing import Any

import pytest
import stripe as library
from stripe import Dispute, StripeClient

from tests.payments.stripe_peer.remote import Remote


def _disputed(stripe: StripeClient, card: str = "pm_card_createDispute") -> Dispute:
    given: Any = {"amount": 2000, "currency": "usd", "allowed_payment_method_types": ["card"]}
    paid = stripe.v1.payment_intents.create(given | {"payment_method": card, "confirm": True})
    return stripe.v1.disputes.list({"payment_intent": paid.id}).data[0]


def _types(stripe: StripeClient) -> list[str]:
    rows = stripe.v1.events.list({"type": "charge.dispute.*"}).data
    return [row.type.removeprefix("charge.dispute.") for row in reversed(rows)]


def test_opened_with_a_time_to_answer(stripe: StripeClient) -> None:
    dispute = _disputed(stripe)
    assert (dispute.status, dispute.reason, dispute.amount) == ("needs_response", "fraudulent", 2000)
    assert dispute.evidence_details.due_by == dispute.created + 9 * 86400
    entry = dispute.balance_transactions[0]
    assert (entry.amount, entry.fee, entry.net) == (-2000, 1500, -3500)
    assert stripe.v1.charges.retrieve(str(dispute.charge)).disputed
    with pytest.raises(library.InvalidRequestError) as refused:
        stripe.v1.refunds.create({"charge": str(dispute.charge)})
    assert refused.value.code == "charge_disputed"
    assert sorted(_types(stripe)) == ["created", "funds_withdrawn"]


@pytest.mark.parametrize(
    ("evidence", "status", "moved"),
    [("winning_evidence", "won", [-2000, 2000]), ("losing_evidence", "lost", [-2000])],
)
def test_evidence_decides(stripe: StripeClient, evidence: str, status: str, moved: list[int]) -> None:
    dispute = _disputed(stripe)
    kept = stripe.v1.disputes.update(dispute.id, {"evidence": {"product_description": "A"}, "submit": False})
    assert (kept.status, kept.evidence_details.has_evidence) == ("needs_response", True)
    ended = stripe.v1.disputes.update(dispute.id, {"evidence": {"uncategorized_text": evidence}})
    assert (ended.status, [entry.amount for entry in ended.balance_transactions]) == (status, moved)
    assert ("funds_reinstated" in _types(stripe)) == (status == "won")
    with pytest.raises(library.InvalidRequestError):
        stripe.v1.disputes.update(dispute.id, {"evidence": {"uncategorized_text": "more"}})


def test_accepted_as_lost(stripe: StripeClient) -> None:
    dispute = _disputed(stripe)
    assert stripe.v1.disputes.close(dispute.id).status == "lost"
    assert "closed" in _types(stripe)


def test_an_inquiry_moves_no_money(stripe: StripeClient) -> None:
    dispute = _disputed(stripe, "pm_card_createDisputeInquiry")
    assert (dispute.status, dispute.balance_transactions) == ("warning_needs_response", [])
    assert dispute.is_charge_refundable
    asked: Any = {"charge": str(dispute.charge), "amount": 500}
    assert stripe.v1.refunds.create(asked).status == "succeeded"
    assert stripe.v1.disputes.retrieve(dispute.id).status == "warning_needs_response"
    assert stripe.v1.refunds.create({"charge": str(dispute.charge)}).status == "succeeded"
    assert stripe.v1.disputes.retrieve(dispute.id).status == "warning_closed"


def test_opened_and_decided_by_a_switch_and_past_its_time(peer: Remote, stripe: StripeClient) -> None:
    given: Any = {"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa", "confirm": True}
    paid = stripe.v1.payment_intents.create(given | {"return_url": "https://shop.example"})
    opened = peer.switch("dispute", charge=str(paid.latest_charge), reason="duplicate")
    peer.switch("advance", seconds=10 * 86400)
    assert stripe.v1.disputes.retrieve(opened["id"]).evidence_details.past_due
    peer.switch("decide", dispute=opened["id"], status="lost")
    assert stripe.v1.disputes.retrieve(opened["id"]).status == "lost"


def _opened(peer: Remote, stripe: StripeClient, **differs: Any) -> Dispute:
    given: Any = {"amount": 2000, "currency": "usd", "payment_method": "pm_card_visa", "confirm": True}
    paid = stripe.v1.payment_intents.create(given | {"return_url": "https://shop.example"})
    opened = peer.switch("dispute", charge=str(paid.latest_charge), **differs)
    return stripe.v1.disputes.retrieve(opened["id"])


def _moved(stripe: StripeClient, dispute: Dispute) -> list[tuple[str, int]]:
    lines = stripe.v1.disputes.retrieve(dispute.id).balance_transactions
    return [(line.reporting_category, line.amount) for line in lines]


TAKEN, BACK = ("dispute", -2000), ("dispute_reversal", 2000)


@pytest.mark.parametrize("amount", [500, 2600])
def test_of_a_part_or_of_more_than_the_charge(peer: Remote, stripe: StripeClient, amount: int) -> None:
    dispute = _opened(peer, stripe, amount=amount)
    assert (dispute.amount, _moved(stripe, dispute)) == (amount, [("dispute", -amount)])


def test_whose_money_is_withdrawn_later_has_no_line_before(peer: Remote, stripe: StripeClient) -> None:
    dispute = _opened(peer, stripe, withdraws=False)
    assert (dispute.status, _moved(stripe, dispute)) == ("needs_response", [])
    with pytest.raises(library.InvalidRequestError):
        stripe.v1.refunds.create({"charge": str(dispute.charge)})
    peer.switch("move_dispute", dispute=dispute.id, is_back=False)
    assert _moved(stripe, dispute) == [TAKEN]


def test_that_is_appealed_can_be_decided_differently(peer: Remote, stripe: StripeClient) -> None:
    dispute = _opened(peer, stripe)
    for status in ("lost", "appeal_needs_response", "appeal_under_review", "won"):
        peer.switch("decide", dispute=dispute.id, status=status)
        assert stripe.v1.disputes.retrieve(dispute.id).status == status
    assert _moved(stripe, dispute) == [TAKEN, BACK]
    assert stripe.v1.refunds.create({"charge": str(dispute.charge)}).status == "succeeded"
    peer.switch("decide", dispute=dispute.id, status="lost")
    assert _moved(stripe, dispute) == [TAKEN, BACK, TAKEN]


@pytest.mark.parametrize("withdraws", [True, False])
def test_that_is_prevented_can_have_withdrawn_money(
    peer: Remote, stripe: StripeClient, withdraws: bool
) -> None:
    dispute = _opened(peer, stripe, status="prevented", withdraws=withdraws)
    assert (dispute.status, _moved(stripe, dispute)) == ("prevented", [TAKEN] if withdraws else [])


def test_inquiry_that_is_closed_moves_no_money(peer: Remote, stripe: StripeClient) -> None:
    dispute = _opened(peer, stripe, reason="warning")
    for status in ("warning_under_review", "warning_closed"):
        peer.switch("decide", dispute=dispute.id, status=status)
    assert stripe.v1.disputes.retrieve(dispute.id).status == "warning_closed"
    assert _moved(stripe, dispute) == []
