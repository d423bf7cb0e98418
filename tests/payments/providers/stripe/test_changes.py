"""The adapter finds changed payments from events. Stripe lists events in any order, and for thirty days."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from config.lib import clock
from payments.models import Discrepancy, FormerAccount, Merchant, Payment
from payments.provider import ProviderUnreachable
from payments.providers.stripe import changes
from tests.payments.providers.conformance.story import Kind, Story
from tests.payments.providers.conformance.stripe import StripeDesk
from tests.payments.providers.stripe.test_movements import (
    CONNECTED,
    OTHER,
    SEEDS,
    captured,
    dispute,
    read,
    refund,
)


def changed(desk: StripeDesk, since: datetime) -> list[UUID]:
    return list(desk.provider.changed(since))


@pytest.mark.rule("provider.accounts")
class TestChanged:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_names_each_payment_once_whatever_the_order_of_its_events(
        self, desk: StripeDesk, acme: Merchant, seed: int
    ) -> None:
        desk.peer.switch("clear", seed=seed)
        since, stories = clock.now(), [captured(desk, acme) for _ in range(4)]
        for story in stories:
            refund(story, 1000)
            desk.dispute(story.payment)
        assert sorted(changed(desk, since)) == sorted(story.payment.pk for story in stories)

    def test_names_an_old_payment_after_each_change(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        refund(story, 1000)
        desk.refund_outside(story.payment, 1000, pending=True)
        ours, theirs = sorted(read(desk, story).refunds, key=lambda row: row.operation is None)
        opened = dispute(desk, story, withdraws=False, amount=500)
        for switch, asked in (
            ("end_refund", {"refund": ours.reference, "status": "failed"}),
            ("end_refund", {"refund": theirs.reference, "status": "canceled"}),
            ("move_dispute", {"dispute": opened, "is_back": False}),
            ("decide", {"dispute": opened, "status": "under_review"}),
            ("decide", {"dispute": opened, "status": "lost"}),
            ("decide", {"dispute": opened, "status": "appeal_under_review"}),
            ("move_dispute", {"dispute": opened, "is_back": True}),
        ):
            desk.peer.switch("advance", seconds=40 * 86400)
            since = self.now(desk)
            assert changed(desk, since) == []
            desk.peer.switch(switch, **asked)
            assert changed(desk, since) == [story.payment.pk], (switch, asked)

    def test_names_holds_that_staff_changed_in_the_dashboard(self, desk: StripeDesk, acme: Merchant) -> None:
        held, released, taken = (Story(desk, acme) for _ in range(3))
        for story in (held, released, taken):
            story.do(Kind.AUTHORIZE)
        desk.peer.switch("advance", seconds=100)
        since = self.now(desk)
        desk.in_dashboard(Kind.VOID, released.payment, 9000)
        desk.in_dashboard(Kind.CAPTURE, taken.payment, 9000)
        assert sorted(changed(desk, since)) == sorted([released.payment.pk, taken.payment.pk])

    def test_names_payments_of_every_account_that_merchants_have_or_had(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        for account in (CONNECTED, "acct_closed"):
            Merchant.objects.filter(pk=acme.pk).update(provider_account=account)
        Merchant.objects.filter(pk=rival.pk).update(provider_account=OTHER)
        assert FormerAccount.objects.filter(provider_account=CONNECTED).exists()
        since = clock.now()
        stories = [captured(desk, acme, CONNECTED), captured(desk, rival, OTHER), captured(desk, rival)]
        assert sorted(changed(desk, since)) == sorted(story.payment.pk for story in stories)

    def test_names_no_payment_for_a_change_in_another_account(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        Merchant.objects.filter(pk=acme.pk).update(provider_account=CONNECTED)
        Merchant.objects.filter(pk=rival.pk).update(provider_account=OTHER)
        since, story = clock.now(), captured(desk, acme, CONNECTED)
        Payment.objects.filter(pk=story.payment.pk).update(provider_account=OTHER)
        assert changed(desk, since) == []

    def test_names_every_payment_where_events_are_no_longer_listed(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        stories = [captured(desk, acme) for _ in range(3)]
        # This payment was never registered at Stripe, so the list of changes must not name it.
        Story(desk, acme)
        desk.peer.switch("advance", seconds=31 * 86400)
        assert changed(desk, clock.now()) == []
        found = changed(desk, clock.now() - changes.EVENTS_KEPT_FOR - timedelta(minutes=1))
        assert sorted(found) == sorted(story.payment.pk for story in stories)

    def test_names_no_payment_for_an_event_that_names_no_intent(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        story = captured(desk, acme)
        refund(story, 1000)
        reference = read(desk, story).refunds[0].reference
        # This payment was never registered at Stripe, so it has no intent. The list of changes must not name
        # it.
        Story(desk, acme)
        desk.peer.switch("advance", seconds=100)
        since = self.now(desk)
        desk.peer.switch("show", thing=reference, fields={"payment_intent": None})
        desk.peer.switch("end_refund", refund=reference, status="failed")
        assert desk.dashboard.v1.events.list({"type": "refund.failed"}).data
        assert changed(desk, since) == []

    def test_asks_for_no_more_names_than_stripe_takes(self) -> None:
        assert len(set(changes.EVENTS)) == len(changes.EVENTS) <= 20

    def test_raises_unreachable_if_stripe_cannot_be_read(
        self, desk: StripeDesk, acme: Merchant, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("payments.providers.stripe.client.BOOKS_PAUSES", (0,))
        settings.STRIPE_API = "http://127.0.0.1:1"
        with pytest.raises(ProviderUnreachable):
            changed(desk, clock.now())

    @pytest.mark.rule("money.late")
    def test_reports_an_account_that_stripe_does_not_let_us_read(
        self, desk: StripeDesk, acme: Merchant, rival: Merchant
    ) -> None:
        Merchant.objects.filter(pk=acme.pk).update(provider_account="acct_closed")
        Merchant.objects.filter(pk=rival.pk).update(provider_account=OTHER)
        since, story = clock.now(), captured(desk, rival, OTHER)
        for _ in range(2):
            assert set(changed(desk, since)) == {story.payment.pk}, "the other accounts are read"
        found = Discrepancy.objects.get()
        assert (found.kind, found.merchant, found.facts) == (
            "account_unreadable",
            acme,
            {"account": "acct_closed"},
        )

    def now(self, desk: StripeDesk) -> datetime:
        """Return the time on the peer's clock, which the test has advanced."""
        return datetime.fromtimestamp(desk.peer.switch("now"), UTC)
