"""The adapter reads the lines of Stripe's balances, with their fees, operations and payouts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from config.lib import clock
from payments.models import BalanceEntry, Merchant, Payment
from payments.provider import Entry, ProviderUnreachable
from payments.providers.stripe import client
from tests.payments.providers.conformance.story import Kind, Story
from tests.payments.providers.conformance.stripe import StripeDesk

pytestmark = [pytest.mark.django_db, pytest.mark.rule("provider.balance")]
CONNECTED = "acct_connected1"
FEE = 291  # for a charge of 9,000 minor units: 2.9 % plus 30


def captured(desk: StripeDesk, merchant: Merchant) -> Story:
    """Return a payment that was captured in the account of its merchant."""
    story = Story(desk, merchant)
    if account := merchant.provider_account:
        token = desk.peer.switch("confirmation_token", account=account, card="pm_card_visa")["id"]
        story.payment.provider_account, story.payment.card_token = account, token
        story.payment.save()
    story.carry_out_preceding(Kind.REFUND)
    return story


def refund(story: Story, amount: int) -> None:
    operation = story.begin(Kind.REFUND, amount)
    story.end(operation, story.ask(operation))


def entries_of(desk: StripeDesk) -> list[Entry]:
    return list(desk.provider.entries(clock.now() - timedelta(hours=1)))


@pytest.fixture
def acme(acme: Merchant) -> Merchant:
    acme.provider_account = CONNECTED
    acme.save()
    return acme


class TestEntries:
    def test_name_their_operation_and_their_fee(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        refund(story, 4000)
        back, taken = entries_of(desk)
        capture = story.payment.operations.get(kind=Kind.CAPTURE)
        assert (taken.kind, taken.amount, taken.fee, taken.currency) == (
            BalanceEntry.Kind.PAYMENT,
            9000,
            FEE,
            "GBP",
        )
        assert (taken.account, taken.payment, taken.operation) == (CONNECTED, story.payment.pk, capture.pk)
        assert abs(taken.at - datetime.now(UTC)) < timedelta(minutes=1) and taken.payout == ""
        assert taken.available_at and taken.available_at > taken.at
        assert (back.kind, back.amount, back.fee) == (BalanceEntry.Kind.REFUND, -4000, 0)
        assert back.operation == story.payment.operations.get(kind=Kind.REFUND).pk

    def test_of_a_payout_add_up_to_it(self, desk: StripeDesk, acme: Merchant) -> None:
        refund(captured(desk, acme), 1000)
        sent = desk.peer.switch("pay_out", account=CONNECTED, currency="gbp")
        captured(desk, acme)
        paid_out = [
            entry
            for entry in entries_of(desk)
            if entry.payout == sent["id"] and entry.kind != BalanceEntry.Kind.PAYOUT
        ]
        assert len(paid_out) == 2 and sum(entry.amount - entry.fee for entry in paid_out) == sent["amount"]
        payouts = {entry for entry in entries_of(desk) if entry.kind == BalanceEntry.Kind.PAYOUT}
        (payout,) = payouts
        assert (payout.amount, payout.payout) == (-sent["amount"], sent["id"])
        assert payout.available_at == datetime.fromtimestamp(sent["arrival_date"], UTC)

    def test_of_a_manual_payout_are_not_assigned_to_it(self, desk: StripeDesk, acme: Merchant) -> None:
        captured(desk, acme)
        desk.peer.switch("pay_out", account=CONNECTED, currency="gbp", automatic=False)
        assert [(entry.kind, bool(entry.payout)) for entry in entries_of(desk)] == [
            (BalanceEntry.Kind.PAYOUT, True),
            (BalanceEntry.Kind.PAYMENT, False),
        ]

    def test_have_the_amount_and_the_fee_of_a_dispute(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        of = desk.peer.client(account=CONNECTED)
        intent = of.v1.payment_intents.retrieve(story.payment.provider_reference)
        desk.peer.switch("dispute", account=CONNECTED, charge=intent.latest_charge)
        lost, _ = entries_of(desk)
        assert (lost.kind, lost.amount, lost.fee) == (BalanceEntry.Kind.DISPUTE, -9000, 1500)
        assert lost.payment == story.payment.pk

    def test_of_the_platforms_account_are_only_fees(self, desk: StripeDesk, rival: Merchant) -> None:
        story = captured(desk, rival)
        desk.peer.switch("pay_out", currency="gbp")
        lines = [(entry.kind, entry.fee, entry.payment) for entry in entries_of(desk) if entry.payment]
        assert lines == [(BalanceEntry.Kind.PAYMENT, FEE, story.payment.pk)]

    def test_of_other_users_of_the_account_name_no_payment(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        Payment.objects.filter(pk=story.payment.pk).update(provider_account="acct_another")
        (line,) = entries_of(desk)
        assert (line.payment, line.operation, line.amount) == (None, None, 9000)

    def test_of_an_inaccessible_account_do_not_prevent_reading_others(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        captured(desk, acme)
        Merchant.objects.filter(pk=rival.pk).update(provider_account="acct_closed")
        assert [entry.account for entry in entries_of(desk)] == [CONNECTED]

    def test_that_cannot_be_read_are_reported_as_unreachable(
        self, desk: StripeDesk, acme: Merchant, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "BOOKS_PAUSES", (0, 0))
        settings.STRIPE_API = "http://127.0.0.1:1"
        with pytest.raises(ProviderUnreachable):
            entries_of(desk)

    @pytest.mark.rule("money.late")
    @pytest.mark.parametrize("goes", [{"mode": "reset"}, {"mode": "error"}, {"mode": "error", "status": 429}])
    def test_are_requested_again_if_a_page_is_refused(
        self, desk: StripeDesk, acme: Merchant, monkeypatch: pytest.MonkeyPatch, goes: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(client, "BOOKS_PAUSES", (0, 0, 0))
        captured(desk, acme)
        before = entries_of(desk)
        desk.peer.switch("fault", method="GET", path="/v1/balance_transactions", times=3, **goes)
        assert entries_of(desk) == before != []
        assert desk.peer.switch("faults") == []

    def test_are_not_requested_again_after_a_minute(
        self, desk: StripeDesk, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "PAGE_SECONDS", 0.5)
        desk.peer.switch("fault", method="GET", path="/v1/balance_transactions", mode="error")
        with pytest.raises(ProviderUnreachable):
            entries_of(desk)
