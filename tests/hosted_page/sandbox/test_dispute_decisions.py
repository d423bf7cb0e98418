"""The sandbox helper `decide-dispute`, which lets the bank decide a dispute."""

from typing import Any
from uuid import uuid4

import pytest

from checkout.models import Checkout
from checkout.proof import ledger_proof
from payments.models import Dispute
from tests.conftest import Api
from tests.hosted_page.browsers import Payer, words
from tests.hosted_page.sandbox.calls import post
from tests.hosted_page.status.reading import plain
from tests.outside import DISPUTED
from tests.refusals import nothing_moves, refused

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sandbox.disputes")]
REVIEW = "Your bank is reviewing your payment of £90.00."


@pytest.fixture
def payer(unpaid: Checkout) -> Payer:
    """Return the browser of a lead who has paid with a test card that leads to a dispute."""
    paid = Payer(unpaid)
    paid.pay(DISPUTED, split="own", name=["Finn"], amount=["20"], your_name="Lea")
    return paid


@pytest.fixture
def contested(api: Api, payer: Payer, unpaid: Checkout) -> Checkout:
    """Return a captured order with an open dispute by the customer."""
    api.post(f"checkouts/{unpaid.pk}/capture")
    assert post(api, unpaid, "advance", {"seconds": 5}).json()["data"]["disputes"][0]["status"] == "open"
    return unpaid


def decide(api: Api, checkout: Checkout, result: Any, **more: str) -> Any:
    return post(api, checkout, "decide-dispute", {"result": result, **more})


def page_of(payer: Payer) -> str:
    return plain(words(payer.get()))


def test_a_won_dispute_leaves_the_money_to_the_merchant(api: Api, payer: Payer, contested: Checkout) -> None:
    assert REVIEW in page_of(payer)
    answer = decide(api, contested, "won")
    shown = answer.json()["data"]
    assert answer.status_code == 200 and [row["status"] for row in shown["disputes"]] == ["won"]
    assert shown["status"] == "captured" and "refund" in shown["available_actions"]
    page = page_of(payer)
    assert REVIEW not in page and "gave you" not in page
    assert ledger_proof.find_breaches() == []
    assert api.post(f"checkouts/{contested.pk}/refund", {"merchant_refund_ref": "r"}).status_code == 204


def test_a_lost_dispute_leaves_the_money_to_the_payer(api: Api, payer: Payer, contested: Checkout) -> None:
    shown = decide(api, contested, "lost").json()["data"]
    assert [row["status"] for row in shown["disputes"]] == ["lost"]
    assert shown["status"] == "captured" and "refund" not in shown["available_actions"]
    page = page_of(payer)
    assert "Your bank gave you £90.00 back" in page and REVIEW not in page
    assert ledger_proof.find_breaches() == []
    answer = api.post(f"checkouts/{contested.pk}/refund", {"merchant_refund_ref": "r"})
    refused(answer, 409, "not_refundable", None)


def test_the_named_dispute_is_decided_or_else_the_oldest(api: Api, unpaid: Checkout) -> None:
    shares = [{"name": "Finn", "amount": 2000}]
    post(api, unpaid, "pay", {"shares": shares})
    api.post(f"checkouts/{unpaid.pk}/capture")
    post(api, unpaid, "pay-share", {"card": DISPUTED})
    post(api, unpaid, "advance", {"seconds": 5})
    (found,) = Dispute.objects.all()
    assert found.amount == 2000
    refused(decide(api, unpaid, "won", dispute_uuid=str(uuid4())), 409, "not_disputed", None)
    shown = decide(api, unpaid, "lost", dispute_uuid=str(found.pk)).json()["data"]
    assert [(row["status"], row["amount"]) for row in shown["disputes"]] == [("lost", 2000)]


def test_is_refused_without_an_open_dispute(api: Api, captured: Checkout) -> None:
    with nothing_moves():
        error = refused(decide(api, captured, "won"), 409, "not_disputed", None)
    assert error["details"][0]["status"] == "captured"


def test_decides_a_dispute_only_once(api: Api, contested: Checkout) -> None:
    assert decide(api, contested, "won").status_code == 200
    with nothing_moves():
        refused(decide(api, contested, "lost"), 409, "not_disputed", None)


def test_another_merchants_checkout_is_not_found(rival_api: Api, contested: Checkout) -> None:
    with nothing_moves():
        refused(decide(rival_api, contested, "won"), 404, "checkout_not_found")


@pytest.mark.parametrize("result", ["open", "", None, True, []], ids=repr)
def test_names_the_result_that_is_wrong(api: Api, contested: Checkout, result: Any) -> None:
    refused(decide(api, contested, result), 422, "validation_failed", "result")
