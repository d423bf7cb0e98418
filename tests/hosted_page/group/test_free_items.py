"""The group link of an order that is split by item. Mates choose units and take them."""

import re

import pytest

from checkout import mate_shares
from checkout.models import Checkout, PaymentRequest
from payments.provider import AmountRule
from payments.providers.sandbox.adapter import SandboxProvider
from tests.factories import CustomerFactory
from tests.hosted_page.browsers import words
from tests.hosted_page.group.test_group_page import Guest

pytestmark = [pytest.mark.django_db, pytest.mark.rule("split.free_units")]


@pytest.fixture
def zoe(by_item: Checkout) -> Guest:
    return Guest(by_item)


def free(order: Checkout) -> list[list[int]]:
    return [share.units for share in order.payment_requests.filter(name="", claim_digest="")]


class TestPage:
    def test_shows_a_stepper_for_more_units_and_a_tick_box_for_one(self, zoe: Guest) -> None:
        Guest(Checkout.objects.get()).post("/take", items="1", name="Ade", **{"units-1": "1"})
        page = words(zoe.get())
        assert "Which items are yours?" in page
        assert re.search(r'name="units-0" type="number"[^>]*max="2"', page)
        assert re.search(r'type="checkbox"[^>]*name="units-1"', page)
        assert "units-2" not in page

    def test_shows_who_has_what(self, zoe: Guest) -> None:
        assert "1 × Standing ticket" in words(zoe.get())

    def test_calculates_the_sum_without_a_script(self, zoe: Guest) -> None:
        page = words(zoe.post("/take", items="1", show="1", name="Zoe", **{"units-0": "2", "units-1": "1"}))
        assert "2 × Standing ticket" in page and "Booking fee, your part" in page
        assert re.search(r"data-yours>£66\.50", page) and 'value="Zoe"' in page
        assert free(Checkout.objects.get()) == [[2, 2, 0]]

    def test_that_is_not_split_by_item_has_no_such_form(self, unpaid: Checkout) -> None:
        lead = CustomerFactory.create()
        mate_shares.make_lead(unpaid.pk, lead)
        mate_shares.split_equally(unpaid.pk, 3, lead=lead.pk, everyone_first=True)
        unpaid.refresh_from_db()
        assert "free-items" not in words(Guest(unpaid).get())


class TestTake:
    def test_leads_to_the_page_of_the_new_share(self, zoe: Guest) -> None:
        taken = zoe.post("/take", items="1", name="Zoe", **{"units-0": "2"})
        assert taken.status_code == 303
        assert "2 × Standing ticket" in words(zoe.client.get(taken["Location"]))
        assert free(Checkout.objects.get()) == [[0, 2, 0]]

    def test_without_a_choice_or_a_name_takes_nothing(self, zoe: Guest) -> None:
        nothing = zoe.post("/take", items="1", name="Zoe")
        assert nothing.status_code == 422 and "Choose your items" in words(nothing)
        nameless = zoe.post("/take", items="1", name=" ", **{"units-0": "1"})
        assert nameless.status_code == 422 and "Enter your name." in words(nameless)
        assert re.search(r'name="units-0"[^>]*value="1"', words(nameless))
        assert free(Checkout.objects.get()) == [[2, 2, 0]]

    def test_of_units_that_another_mate_has_just_taken_offers_the_remaining_units(self, zoe: Guest) -> None:
        Guest(Checkout.objects.get()).post("/take", items="1", name="Ade", **{"units-0": "1"})
        late = zoe.post("/take", items="1", name="Zoe", **{"units-0": "2"})
        assert late.status_code == 409 and "Only 1 Standing ticket is left" in words(late)
        assert "Your choice is now 1." in words(late)
        assert PaymentRequest.objects.filter(claim_name="Zoe").count() == 0

    def test_of_units_that_are_all_taken_says_so(self, zoe: Guest) -> None:
        Guest(Checkout.objects.get()).post("/take", items="1", name="Ade", **{"units-0": "2", "units-1": "2"})
        late = zoe.post("/take", items="1", name="Zoe", **{"units-0": "2"})
        assert late.status_code == 409 and "These items were just taken" in words(late)

    @pytest.mark.parametrize("typed", ["-1", "1.5", "many", "99999999", "²"])
    def test_of_an_invalid_number_takes_nothing(self, zoe: Guest, typed: str) -> None:
        assert zoe.post("/take", items="1", name="Zoe", **{"units-0": typed}).status_code == 422
        assert free(Checkout.objects.get()) == [[2, 2, 0]]

    @pytest.mark.rule("split.minimum")
    def test_below_the_minimum_says_what_is_missing(
        self, zoe: Guest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SandboxProvider, "amount_rule", lambda _, currency: AmountRule(minimum=2000))
        small = zoe.post("/take", items="1", name="Zoe", **{"units-1": "1"})
        assert small.status_code == 422 and "£1.00 more is needed" in words(small)

    def test_by_one_person_too_often_is_refused(self, zoe: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
        for _time in range(30):
            zoe.post("/take", items="1", name="Zoe", **{"units-0": "1"})
        refused = zoe.post("/take", items="1", name="Zoe", **{"units-0": "1"})
        assert refused.status_code == 429
