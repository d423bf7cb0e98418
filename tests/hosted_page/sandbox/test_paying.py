"""The sandbox helpers `pay`, `split` and `confirm`, which act for a customer without a browser."""

from typing import Any

import pytest

from checkout import authorizations
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from hosted_page.sandbox import paying
from payments.models import Operation
from payments.provider import CardUse
from payments.providers.sandbox import bank
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory
from tests.hosted_page.sandbox.calls import post

pytestmark = pytest.mark.django_db
CHALLENGE = "4000002500003155"


class TestPay:
    @pytest.mark.rule("sandbox.pay")
    def test_holds_the_money_as_the_hosted_page_does(self, api: Api, unpaid: Checkout) -> None:
        answer = post(api, unpaid, "pay", {})
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "authorized")
        unpaid.refresh_from_db()
        assert unpaid.lead is not None and unpaid.lead.phone == "+447700900123"

    @pytest.mark.rule("sandbox.pay")
    def test_a_decline_is_a_402_with_its_reason(self, api: Api, unpaid: Checkout) -> None:
        answer = post(api, unpaid, "pay", {"card": "4000000000009995"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (402, "card_declined")
        assert answer.json()["error"]["details"] == [{"reason": "insufficient_funds"}]

    @pytest.mark.rule("sandbox.pay")
    def test_a_held_checkout_is_not_payable(self, api: Api, held: Checkout) -> None:
        answer = post(api, held, "pay", {})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_payable")
        assert Operation.objects.count() == 1

    @pytest.mark.parametrize(("field", "value"), [("card", "4111111111111111"), ("phone", "12345")])
    def test_names_the_field_that_is_wrong(self, api: Api, unpaid: Checkout, field: str, value: str) -> None:
        answer = post(api, unpaid, "pay", {field: value})
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, field)
        assert not Operation.objects.exists()

    @pytest.mark.rule("sandbox.pay")
    @pytest.mark.parametrize(
        ("more", "name"),
        [
            ({}, ""),
            ({"name": "Mia"}, "Mia"),
            ({"shares": [{"amount": 10}]}, "Lea"),
            ({"name": "Mia", "shares": [{"amount": 10}]}, "Mia"),
        ],
        ids=repr,
    )
    def test_gives_the_leads_name(self, api: Api, unpaid: Checkout, more: Any, name: str) -> None:
        assert post(api, unpaid, "pay", more).status_code == 200
        unpaid.refresh_from_db()
        assert unpaid.lead is not None and unpaid.lead.name == name

    @pytest.mark.parametrize("name", ["", " ", "x" * 31, "a\x00b", 5, [], None], ids=repr)
    def test_refuses_a_name_that_the_page_refuses(self, api: Api, unpaid: Checkout, name: Any) -> None:
        answer = post(api, unpaid, "pay", {"name": name})
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "name")
        assert not Operation.objects.exists()

    @pytest.mark.rule("sandbox.cards")
    @pytest.mark.parametrize("card", ["4242 4242 4242 4242", " 3782 822463 10005 ", "5555  5555  5555  4444"])
    def test_ignores_spaces_in_the_card_number(self, api: Api, unpaid: Checkout, card: str) -> None:
        assert post(api, unpaid, "pay", {"card": card}).json()["data"]["status"] == "authorized"

    @pytest.mark.rule("sandbox.pay")
    @pytest.mark.parametrize("phone", ["+447700900123", "+447700900124"])
    def test_waits_for_a_challenge_that_is_open_on_the_page(
        self, api: Api, unpaid: Checkout, phone: str
    ) -> None:
        lead = CustomerFactory.create(phone="+447700900123")
        token = bank.tokenise(subject=unpaid.pk, number=CHALLENGE)
        authorizations.authorize(unpaid.pk, card=CardUse(token), lead=lead, cause=CAUSE)
        for body in ({"phone": phone}, {"phone": phone, "shares": [{"amount": 10}]}):
            answer = post(api, unpaid, "pay", body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "operation_in_progress")
        assert Operation.objects.get().ended_at is None

    @pytest.mark.parametrize(
        ("status", "code"), [("created", "operation_in_progress"), ("expired", "not_payable")]
    )
    def test_says_what_happened_if_the_challenge_ended_elsewhere(
        self, api: Api, unpaid: Checkout, monkeypatch: pytest.MonkeyPatch, status: str, code: str
    ) -> None:
        def ended(*_: Any, **__: Any) -> None:
            at = clock.now() if status == "expired" else None
            Checkout.objects.filter(pk=unpaid.pk).update(status=status, expired_at=at)

        monkeypatch.setattr(paying, "_answer_challenge", ended)
        answer = post(api, unpaid, "pay", {"card": CHALLENGE})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, code)

    def test_another_merchants_checkout_is_not_found(self, rival_api: Api, unpaid: Checkout) -> None:
        for verb, body in (("pay", {}), ("pay-share", {}), ("advance", {"seconds": 1})):
            answer = post(rival_api, unpaid, verb, body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "checkout_not_found")


SPLIT = {"shares": [{"name": "Finn", "amount": 2000}, {"amount": 3000}]}


@pytest.fixture
def split(api: Api, unpaid: Checkout) -> Checkout:
    """Return a captured order with two shares. One has the name Finn, the other has no name."""
    assert post(api, unpaid, "pay", SPLIT).status_code == 200
    assert api.post(f"checkouts/{unpaid.pk}/capture").status_code == 200
    return unpaid


class TestShares:
    @pytest.mark.rule("sandbox.shares")
    def test_are_asked_for_when_the_lead_pays(self, api: Api, unpaid: Checkout) -> None:
        shown = post(api, unpaid, "pay", SPLIT).json()["data"]
        assert [(one["amount"], one["status"]) for one in shown["payment_requests"]] == [
            (2000, "draft"),
            (3000, "draft"),
        ]
        assert shown["shares"] == {"count": 2, "pledged_count": 0, "paid_count": 0, "paid_amount": 0}

    @pytest.mark.parametrize(
        "shares",
        [
            [],
            [{"amount": 0}],
            [{"name": "Finn"}],
            [{"amount": 9001}],
            [{"amount": 1}] * 20,
            "Finn",
            [5],
            [{"amount": 1, "name": 5}],
        ],
        ids=repr,
    )
    def test_that_are_invalid_are_refused(self, api: Api, unpaid: Checkout, shares: Any) -> None:
        answer = post(api, unpaid, "pay", {"shares": shares})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "validation_failed")
        assert answer.json()["error"]["param"].startswith("shares")
        assert not Operation.objects.exists() and not PaymentRequest.objects.exists()

    @pytest.mark.rule("sandbox.shares")
    def test_are_paid_one_by_one_and_reimbursed_to_the_lead(self, api: Api, split: Checkout) -> None:
        for number in (1, 2):
            paid = post(api, split, "pay-share", {"card": "5555555555554444"}).json()["data"]
            assert paid["status"] in ("paid", "reimbursed")
            assert api.get(f"checkouts/{split.pk}").json()["data"]["shares"]["paid_count"] == number
        post(api, split, "advance", {"seconds": 60})
        shares = split.payment_requests.values_list("status", flat=True)
        assert set(shares) == {"reimbursed"}
        answer = post(api, split, "pay-share", {})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "share_not_open")

    def test_are_paid_with_another_card_than_the_leads(self, api: Api, unpaid: Checkout) -> None:
        shares = [{"name": "Finn", "amount": 1000}]
        post(api, unpaid, "pay", {"card": "5555555555554444", "shares": shares})
        assert api.post(f"checkouts/{unpaid.pk}/capture").status_code == 200
        answer = post(api, unpaid, "pay-share", {})
        assert (answer.status_code, answer.json()["data"]["status"]) in ((200, "paid"), (200, "reimbursed"))

    def test_can_be_chosen(self, api: Api, split: Checkout) -> None:
        second = split.payment_requests.get(position=3)
        paid = post(api, split, "pay-share", {"payment_request_uuid": str(second.pk)}).json()["data"]
        assert paid["payment_request_uuid"] == str(second.pk)
        assert post(api, split, "pay-share", {"payment_request_uuid": "x"}).status_code == 422

    @pytest.mark.parametrize(
        ("card", "reason"), [("4000000000000002", "declined"), ("4242424242424242", "same_card")]
    )
    def test_stay_open_after_a_declined_card(self, api: Api, split: Checkout, card: str, reason: str) -> None:
        answer = post(api, split, "pay-share", {"card": card})
        assert (answer.status_code, answer.json()["error"]["code"]) == (402, "card_declined")
        assert answer.json()["error"]["details"] == [{"reason": reason}]
        assert set(split.payment_requests.values_list("status", flat=True)) == {"open"}

    def test_can_ask_the_mate_to_confirm(self, api: Api, split: Checkout) -> None:
        assert post(api, split, "pay-share", {"card": "4000002500003155"}).status_code == 200

    @pytest.mark.rule("sandbox.shares")
    @pytest.mark.parametrize("is_open", [True, False], ids=["challenge open", "challenge ended"])
    def test_are_not_open_if_the_order_ends_while_one_is_paid(
        self, api: Api, split: Checkout, monkeypatch: pytest.MonkeyPatch, is_open: bool
    ) -> None:
        answer_challenge = paying._answer_challenge

        def refund_first(subject: Any, *, is_confirmed: bool) -> Any:
            assert api.post(f"checkouts/{split.pk}/refund", {"merchant_refund_ref": "R-1"}).status_code == 204
            return answer_challenge(subject, is_confirmed=is_confirmed) if is_open else None

        monkeypatch.setattr(paying, "_answer_challenge", refund_first)
        answer = post(api, split, "pay-share", {"card": CHALLENGE})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "share_not_open")

    def test_end_when_two_weeks_have_passed(self, api: Api, split: Checkout) -> None:
        for _ in range(2):
            post(api, split, "advance", {"seconds": 7 * 86_400})
        assert set(split.payment_requests.values_list("status", flat=True)) == {"expired"}

    def test_go_back_to_each_card_with_a_refund(self, api: Api, split: Checkout) -> None:
        post(api, split, "pay-share", {})
        post(api, split, "advance", {"seconds": 60})
        assert api.post(f"checkouts/{split.pk}/refund", {"merchant_refund_ref": "r-1"}).status_code == 204
        for _ in range(3):
            shown = post(api, split, "advance", {"seconds": 60}).json()["data"]
        assert (shown["status"], shown["refunded_amount"]) == ("refunded", 9000)
        assert sorted(split.payment_requests.values_list("status", flat=True)) == ["cancelled", "refunded"]
