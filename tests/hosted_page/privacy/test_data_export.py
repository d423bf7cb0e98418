"""A person's export contains only their own data, and a merchant's export only what the merchant may see."""

import json
from typing import Any

import pytest

from checkout import captures
from checkout.models import Checkout, Customer, PaymentRequest
from payments.models import Merchant
from tests import factories, mates
from tests.factories import CAUSE, CustomerFactory
from tests.hosted_page.privacy.persons import EMAIL, PHONE, give_card, run

pytestmark = [pytest.mark.django_db, pytest.mark.rule("privacy.export")]


class TestExport:
    def export(self, *arguments: str) -> Any:
        return json.loads(run("export_person", "--phone", PHONE, *arguments))

    def test_contains_all_data_of_the_person(self, order: Checkout) -> None:
        found = self.export()
        assert (found["name"], found["phone"]) == ("Lea", PHONE)
        assert [(row["checkout_uuid"], row["cards"]) for row in found["orders"]] == [
            (str(order.pk), [{"brand": "Visa", "last4": "4242", "status": "captured"}])
        ]
        assert [row["email"] for row in found["opt_ins"]] == [EMAIL]

    def test_can_be_limited_to_one_merchant(self, order: Checkout, rival: Merchant) -> None:
        found = self.export("--merchant", str(rival.pk))
        assert found["orders"] == found["opt_ins"] == found["shares"] == []
        assert len(self.export("--merchant", str(order.merchant.pk))["orders"]) == 1

    def test_contains_no_other_persons_card(self, unpaid: Checkout, lea: Customer) -> None:
        """The export of Lea's data contains only the cards with which she paid.

        It leaves out two cards. One was declined for a previous lead, before Lea became the lead. With the
        other one, another person paid a share that was sent to Lea's number.
        """
        give_card(unpaid, CustomerFactory.create(), "4000000000000002")
        give_card(unpaid, lea, "4000000000009995")
        share = mates.split(unpaid, 2000)[0]
        give_card(unpaid, lea, "4242424242424242")
        captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
        PaymentRequest.objects.update(name="Finn", phone=PHONE)
        mates.pay(share)
        mates.settled(share)
        found = self.export()
        assert [card["last4"] for card in found["orders"][0]["cards"]] == ["9995", "4242"]
        assert [(row["name"], row["cards"]) for row in found["shares"]] == [(None, [])]

    @pytest.mark.rule("share.privacy")
    def test_of_one_merchant_excludes_shares_and_data_of_others(
        self, order: Checkout, lea: Customer, acme: Merchant
    ) -> None:
        other = factories.checkout(acme)
        Checkout.objects.filter(pk=other.pk).update(lead=CustomerFactory.create())
        share = mates.split(other, 2000)[0]
        PaymentRequest.objects.filter(pk=share.pk).update(mate=lea, name="Lea")
        assert len(self.export()["shares"]) == 1 and self.export()["known_since"]
        found = self.export("--merchant", str(acme.pk))
        assert (found["shares"], found["known_since"], found["remembered_since"]) == ([], None, [])
        assert found["signed_in_since"] == []
        assert found["name"] == "Lea"
