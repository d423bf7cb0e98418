"""A payment id in Stripe's metadata counts only if it is in an account of the payment's merchant."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from config.lib import clock
from payments.models import Merchant, Payment
from tests.payments.providers.conformance.story import Kind, Story
from tests.payments.providers.conformance.stripe import StripeDesk

pytestmark = [pytest.mark.rule("restore.repair"), pytest.mark.rule("provider.accounts")]
ACME, RIVAL = "acct_connected1", "acct_connected2"


@pytest.fixture
def accounts(acme: Merchant, rival: Merchant) -> None:
    """Give each merchant its own account."""
    for merchant, account in ((acme, ACME), (rival, RIVAL)):
        merchant.provider_account = account
        merchant.save()


def capture(desk: StripeDesk, account: str | None, merchant: Merchant, payment: UUID | None = None) -> UUID:
    """Charge a card in a merchant's Stripe account without using the service. Put our ids into the metadata.

    Return the payment's id.
    """
    payment, subject = payment or uuid7(), uuid7()
    asked: Any = {"amount": 9000, "currency": "gbp", "payment_method": "pm_card_visa", "confirm": True}
    asked |= {"return_url": "https://shop.example"}
    names = {"payment": str(payment), "merchant": str(merchant.pk), "subject": str(subject)}
    desk.peer.client(account=account).v1.payment_intents.create(asked | {"metadata": names})
    return payment


def payments_in_books(desk: StripeDesk) -> set[tuple[UUID, UUID, str]]:
    """Return the payment, merchant and account of each record that the adapter yields."""
    rows = desk.provider.payments(clock.now() - timedelta(hours=1))
    return {(row.payment, row.account, row.place) for row in rows}


@pytest.mark.usefixtures("accounts")
class TestAPayment:
    def test_in_its_merchants_account_is_accepted(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        payments = {
            (capture(desk, ACME, acme), acme.pk, ACME),
            (capture(desk, RIVAL, rival), rival.pk, RIVAL),
        }
        assert payments_in_books(desk) == payments

    def test_in_another_merchants_account_is_ignored(self, desk: StripeDesk, acme: Merchant) -> None:
        own = capture(desk, ACME, acme)
        capture(desk, RIVAL, acme)
        assert payments_in_books(desk) == {(own, acme.pk, ACME)}

    def test_in_a_former_account_is_accepted(self, desk: StripeDesk, acme: Merchant) -> None:
        payment = capture(desk, ACME, acme)
        Merchant.objects.filter(pk=acme.pk).update(provider_account="acct_closed")
        assert payments_in_books(desk) == {(payment, acme.pk, ACME)}

    def test_in_our_account_is_accepted_for_a_merchant_without_its_own(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        Merchant.objects.filter(pk=rival.pk).update(provider_account="")
        never_there = Merchant.objects.create(name="Elsewhere", provider_account=ACME)
        ours = capture(desk, None, rival)
        capture(desk, None, never_there)
        assert payments_in_books(desk) == {(ours, rival.pk, "")}

    def test_of_another_merchant_is_not_claimed_by_its_id(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        story = Story(desk, acme)
        token = desk.peer.switch("confirmation_token", account=ACME)["id"]
        Payment.objects.filter(pk=story.payment.pk).update(provider_account=ACME, card_token=token)
        story.payment.refresh_from_db()
        story.carry_out_preceding(Kind.CAPTURE)
        capture(desk, RIVAL, rival, story.payment.pk)
        assert payments_in_books(desk) == {(story.payment.pk, acme.pk, ACME)}
