"""The split step, split by item: the lead assigns units to mates, or leaves them free."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from checkout import mate_shares
from checkout.models import Checkout
from payments.models import Merchant
from payments.provider import AmountRule
from payments.providers.sandbox.adapter import SandboxProvider
from tests import factories, mates
from tests.hosted_page.browsers import Payer, words

pytestmark = [pytest.mark.django_db, pytest.mark.rule("split.by_item")]


@pytest.fixture
def lea(acme: Merchant) -> Payer:
    """Return the browser of a lead who is signed in to an order of £133.00."""
    payer = Payer(factories.mixed_checkout(acme))
    payer.sign_in()
    return payer


def split(lea: Payer, units: Mapping[int, str | list[str]], *names: str, **more: str) -> Any:
    typed: dict[str, str | list[str]] = {f"units-{line}": value for line, value in units.items()}
    typed |= {"split": "item", "your_name": "Lea", "name": list(names) or [""], "when": "first"}
    return lea.post("/split", **(typed | more))


def shares(order: Checkout) -> list[tuple[str, int, list[int]]]:
    rows = order.payment_requests.order_by("position")
    return [(share.name, share.amount, share.units) for share in rows]


class TestTheForm:
    def test_offers_a_stepper_for_each_line_and_none_for_a_fee(self, lea: Payer) -> None:
        page = words(lea.get("/split"))
        assert 'id="split-item"' in page and "How many are yours?" in page
        assert re.findall(r'name="units-(\d+)" type="number"', page) == ["0", "1"]
        assert "Shared in proportion" in page

    def test_is_not_offered_for_an_order_of_fees(self, acme: Merchant) -> None:
        fee = factories.item(name="Membership", quantity=1, unit_price=9000, category="fee")
        lea = Payer(factories.checkout(acme, items=[fee]))
        lea.sign_in()
        assert 'id="split-item"' not in words(lea.get("/split"))
        assert split(lea, {0: "1"}, "Finn").status_code == 422

    def test_opens_one_line_at_a_time_and_keeps_the_others(self, lea: Payer) -> None:
        page = words(split(lea, {0: "1 2", 1: "0 1"}, "Finn", assign="1"))
        assert re.search(r'type="hidden" name="units-0" value="1 2', page)
        assert re.findall(r'name="units-1" type="number"[^>]*value="(\d)"', page) == ["0", "1"]
        assert shares(lea.checkout) == []

    def test_adds_a_line_for_a_mate(self, lea: Payer) -> None:
        page = words(split(lea, {0: "1 2"}, "Finn", add="1"))
        assert len(re.findall(r'class="mate[^"]*"', page)) - len(re.findall(r"not-item", page)) == 2

    def test_of_a_hundred_lines_of_a_thousand_units_stays_small(self, acme: Merchant) -> None:
        lines = [factories.item(item_ref=str(at), quantity=1000, unit_price=100) for at in range(100)]
        lea = Payer(factories.checkout(acme, items=lines, total_amount=10_000_000))
        lea.sign_in()
        assert len(lea.get("/split").content) < 250_000
        names = [f"Mate {number}" for number in range(19)]
        held = {line: " ".join(["50"] * 20) for line in range(100)}
        assert len(words(split(lea, held, *names, assign="3"))) < 450_000
        assert split(lea, held, *names).status_code == 303
        assert [share[1] for share in shares(lea.checkout)] == [500_000] * 19


class TestSaving:
    def test_asks_each_mate_for_their_units_and_leaves_the_others_free(self, lea: Payer) -> None:
        assert split(lea, {0: ["1", "1", "0"], 1: "0 1 0"}, "Finn", "").status_code == 303
        assert shares(lea.checkout) == [("Finn", 4275, [1, 1, 0]), ("", 6650, [2, 1, 0])]

    def test_shows_the_saved_split_again(self, lea: Payer) -> None:
        split(lea, {0: "1 1", 1: "0 1"}, "Finn", when="later")
        page = words(lea.get("/split"))
        assert re.search(r'name="units-0" value="1 1"', page) and 'value="Finn"' in page
        assert "2 free" in page

    def test_keeps_the_units_that_a_mate_took_at_the_link(self, lea: Payer) -> None:
        split(lea, {0: "1", 1: "0"})
        share = lea.checkout.payment_requests.get()
        share.claim("z" * 64, lea.checkout.created_at, lea.checkout.payable_until, name="Zoe")
        mates.pay(share, claim="z" * 64)
        page = words(lea.get("/split"))
        assert 'value="Zoe"' in page and re.search(r'name="units-0" value="1 3"', page)
        assert split(lea, {0: "1 3", 1: "0 2"}, "Zoe").status_code == 303
        share.refresh_from_db()
        assert share.status == "pledged"

    @pytest.mark.parametrize(
        ("units", "names", "why"),
        [
            ({0: "3 2"}, ["Finn"], "Standing ticket: the order has 4."),
            ({0: "1 1"}, [""], "Enter a name."),
            ({0: "1 0"}, ["Finn"], "Give Finn an item, or remove the name."),
            ({0: "4", 1: "2"}, [""], "Leave an item free for your mates"),
            ({0: "-1 1"}, ["Finn"], "Standing ticket: enter whole numbers."),
            ({0: "one"}, [""], "Standing ticket: enter whole numbers."),
            ({0: "0 1"}, ["Finn"] + [""] * 18 + ["Amy"], "At most 19 mates can share the cost."),
        ],
    )
    def test_of_units_that_do_not_fit_says_why_and_saves_nothing(
        self, lea: Payer, units: Mapping[int, str | list[str]], names: list[str], why: str
    ) -> None:
        refused = split(lea, units, *names)
        assert refused.status_code == 422 and why in words(refused)
        assert shares(lea.checkout) == []

    def test_with_nineteen_mates_leaves_nothing_free(self, acme: Merchant) -> None:
        lea = Payer(factories.checkout(acme, items=[factories.item(quantity=20, unit_price=450)]))
        lea.sign_in()
        names = [f"Mate {number}" for number in range(19)]
        refused = split(lea, {0: " ".join(["0", *["1"] * 19])}, *names)
        assert refused.status_code == 422 and "At most 19 mates can share the cost, and free" in words(
            refused
        )

    def test_ignores_units_of_a_fee(self, lea: Payer) -> None:
        assert split(lea, {0: "1 1", 2: "0 1"}, "Finn").status_code == 303
        assert shares(lea.checkout)[0] == ("Finn", 2375, [1, 0, 0])

    @pytest.mark.rule("split.minimum")
    def test_below_the_minimum_says_what_is_missing(
        self, lea: Payer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: AmountRule(minimum=2000))
        refused = split(lea, {1: "0 1"}, "Finn")
        assert refused.status_code == 422 and "£1.00 more is needed" in words(refused)

    def test_can_become_an_equal_split(self, lea: Payer) -> None:
        split(lea, {0: "1 1"}, "Finn")
        lea.post("/split", split="equal", people="2", your_name="Lea", when="first")
        assert shares(lea.checkout) == [("", 6650, [])]
        mate_shares.split_equally(lea.checkout.pk, 1, lead=Checkout.objects.get().lead_id)
        assert shares(lea.checkout) == []
