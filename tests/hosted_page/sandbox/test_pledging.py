"""The sandbox helpers `split` and `pledge-share`, with which mates pledge before the lead pays."""

from typing import Any

import pytest

from checkout.models import Checkout
from tests.conftest import Api
from tests.hosted_page.sandbox.calls import post

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sandbox.pledges")]
SPLIT = {"name": "Lea", "shares": [{"name": "Finn", "amount": 2000}, {"amount": 3000}]}


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.fixture
def split(api: Api, unpaid: Checkout) -> Checkout:
    """Return an unpaid order with two shares whose links are open."""
    assert post(api, unpaid, "split", SPLIT).status_code == 200
    return unpaid


class TestSplit:
    def test_answers_with_the_read_and_the_open_shares(self, api: Api, unpaid: Checkout) -> None:
        shown = post(api, unpaid, "split", SPLIT).json()["data"]
        assert shown["status"] == "created"
        assert [(one["amount"], one["status"]) for one in shown["payment_requests"]] == [
            (2000, "open"),
            (3000, "open"),
        ]
        unpaid.refresh_from_db()
        assert unpaid.lead is not None and unpaid.lead.name == "Lea"

    def test_needs_shares_and_an_order_that_can_be_paid(self, api: Api, unpaid: Checkout) -> None:
        assert refusal(post(api, unpaid, "split", {"name": "Lea"})) == (422, "validation_failed")
        assert post(api, unpaid, "pay", {}).status_code == 200
        assert refusal(post(api, unpaid, "split", SPLIT)) == (409, "not_payable")

    def test_leaves_no_shares_to_the_payment(self, api: Api, split: Checkout) -> None:
        answer = post(api, split, "pay", {"shares": [{"amount": 10}]})
        assert refusal(answer) == (422, "validation_failed")
        assert answer.json()["error"]["param"] == "shares"
        assert post(api, split, "pay", {}).json()["data"]["status"] == "authorized"

    @pytest.mark.rule("read.shares")
    def test_of_a_second_split_counts_only_the_current_shares(self, api: Api, split: Checkout) -> None:
        second = {"name": "Lea", "shares": [{"name": "Amy", "amount": 1000}]}
        assert len(post(api, split, "split", second).json()["data"]["payment_requests"]) == 1
        shares = api.get(f"checkouts/{split.pk}").json()["data"]["shares"]
        assert shares == {"count": 1, "pledged_count": 0, "paid_count": 0, "paid_amount": 0}

    def test_needs_ten_minutes_until_the_order_expires(self, api: Api, unpaid: Checkout) -> None:
        post(api, unpaid, "advance", {"seconds": 51 * 60})
        late = post(api, unpaid, "split", SPLIT)
        assert refusal(late) == (409, "not_payable")
        assert late.json()["error"]["message"].startswith("Less than 10 minutes are left")


class TestPledgeShare:
    @pytest.mark.rule("pledge.count")
    def test_holds_a_card_until_the_capture_charges_it(self, api: Api, split: Checkout) -> None:
        for number in (1, 2):
            pledged = post(api, split, "pledge-share", {"card": "5555555555554444"})
            assert (pledged.status_code, pledged.json()["data"]["status"]) == (200, "pledged")
            shares = api.get(f"checkouts/{split.pk}").json()["data"]["shares"]
            assert (shares["pledged_count"], shares["paid_count"]) == (number, 0)
        assert refusal(post(api, split, "pledge-share", {})) == (409, "share_not_open")
        assert post(api, split, "pay", {}).status_code == 200
        assert api.post(f"checkouts/{split.pk}/capture").status_code == 200
        post(api, split, "advance", {"seconds": 60})
        shares = api.get(f"checkouts/{split.pk}").json()["data"]["shares"]
        assert shares == {"count": 2, "pledged_count": 0, "paid_count": 2, "paid_amount": 5000}

    def test_a_declined_card_is_a_402(self, api: Api, split: Checkout) -> None:
        answer = post(api, split, "pledge-share", {"card": "4000000000000002"})
        assert refusal(answer) == (402, "card_declined")
        assert set(split.payment_requests.values_list("status", flat=True)) == {"open"}

    def test_a_challenge_is_confirmed(self, api: Api, split: Checkout) -> None:
        answer = post(api, split, "pledge-share", {"card": "4000002500003155"})
        assert answer.json()["data"]["status"] == "pledged"

    def test_is_not_for_an_order_without_open_links(self, api: Api, unpaid: Checkout) -> None:
        assert refusal(post(api, unpaid, "pledge-share", {})) == (409, "share_not_open")
        assert refusal(post(api, unpaid, "pay-share", {})) == (409, "share_not_open")

    def test_an_unpaid_order_takes_no_payment_of_a_share(self, api: Api, split: Checkout) -> None:
        assert refusal(post(api, split, "pay-share", {})) == (409, "share_not_open")

    def test_the_hold_is_released_when_the_order_expires(self, api: Api, split: Checkout) -> None:
        post(api, split, "pledge-share", {})
        read = post(api, split, "advance", {"seconds": 3700}).json()["data"]
        assert read["status"] == "expired" and read["shares"]["pledged_count"] == 0
