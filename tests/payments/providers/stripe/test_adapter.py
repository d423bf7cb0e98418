"""Behaviour that only Stripe's adapter has.

The adapter registers an intent before a payment, handles connected accounts and keys that are in use, and can request
3-D Secure.
"""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from stripe import PaymentIntentService
from stripe.params import PaymentIntentListParams

from config.lib import clock
from payments.models import Merchant, Payment
from payments.provider import Books, CardForm, CardPage, Outcome, Verdict
from payments.providers.stripe import books
from tests.payments.providers.conformance.desk import CallFailure, Card
from tests.payments.providers.conformance.story import Kind, Story
from tests.payments.providers.conformance.stripe import CARDS, StripeDesk, act

CONNECTED = "acct_connected1"


def intents(desk: StripeDesk, account: str | None = None) -> list[str]:
    """Return the statuses of all PaymentIntents in an account."""
    return [row.status for row in desk.peer.client(account=account).v1.payment_intents.list().data]


@pytest.mark.rule("provider.registered")
class TestRegistering:
    def test_commits_the_id_before_any_money_is_requested(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        desk.make_calls_fail("authorize", CallFailure.SILENT)
        assert story.ask(story.begin(Kind.AUTHORIZE)).verdict == Verdict.UNKNOWN
        story.payment.refresh_from_db()
        assert story.payment.provider_reference.startswith("pi_")
        assert intents(desk) == ["requires_payment_method"]

    @pytest.mark.parametrize("failure", [CallFailure.DONE_SILENT, CallFailure.SILENT, CallFailure.ERROR])
    def test_in_doubt_is_repeated_and_creates_one_payment(
        self, desk: StripeDesk, acme: Merchant, failure: CallFailure
    ) -> None:
        story = Story(desk, acme)
        operation = story.begin(Kind.AUTHORIZE)
        desk.make_calls_fail("register", failure)
        assert story.ask(operation).verdict == Verdict.UNKNOWN
        found = story.look_up(operation)
        assert (found.verdict, found.is_vouched) == (Verdict.NOT_FOUND, True)
        assert story.send_again(operation).verdict == Verdict.SUCCEEDED
        assert intents(desk) == ["requires_capture"]

    def test_again_after_a_day_leaves_one_intent_without_a_hold(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        story = Story(desk, acme)
        operation = story.begin(Kind.AUTHORIZE)
        desk.make_calls_fail("register", CallFailure.DONE_SILENT)
        story.ask(operation)
        desk.age_keys()
        assert story.send_again(operation).verdict == Verdict.SUCCEEDED
        assert sorted(intents(desk)) == ["requires_capture", "requires_payment_method"]

    def test_keeps_the_id_that_another_process_has_committed(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        operation = story.begin(Kind.AUTHORIZE)
        other = desk.provider.register(story.payment, 5.0).reference
        Payment.objects.filter(pk=story.payment.pk).update(provider_reference=other)
        desk.age_keys()  # so that the second call creates a new intent
        assert story.ask(operation).verdict == Verdict.SUCCEEDED
        assert operation.payment.provider_reference == other
        assert sorted(intents(desk)) == ["requires_capture", "requires_payment_method"]

    def test_of_an_amount_outside_stripes_limits_fails(self, desk: StripeDesk, acme: Merchant) -> None:
        said = Story(desk, acme, amount=29).do(Kind.AUTHORIZE)
        assert (said.verdict, said.reason) == (Verdict.FAILED, "amount_too_small")


@pytest.mark.rule("provider.accounts")
class TestAnAccount:
    def test_of_a_merchant_has_all_of_its_payments(self, desk: StripeDesk, acme: Merchant) -> None:
        story = connected(desk, acme)
        for kind in (Kind.AUTHORIZE, Kind.CAPTURE, Kind.REFUND):
            assert story.do(kind).verdict == Verdict.SUCCEEDED
        assert (intents(desk), intents(desk, CONNECTED)) == ([], ["succeeded"])

    @pytest.mark.rule("money.late")
    @pytest.mark.rule("restore.repair")
    def test_that_its_merchant_no_longer_uses_is_still_read(self, desk: StripeDesk, acme: Merchant) -> None:
        since, story = clock.now() - timedelta(hours=1), connected(desk, acme)
        story.carry_out_preceding(Kind.REFUND)
        for account in (CONNECTED, "", "acct_closed"):
            Merchant.objects.filter(pk=acme.pk).update(provider_account=account)
        assert sorted(books.list_accounts()) == ["", "acct_closed", CONNECTED]
        client = desk.peer.client(account=CONNECTED)
        act(client, Kind.REFUND, story.payment, 2500)
        intent = client.v1.payment_intents.retrieve(story.payment.provider_reference)
        desk.peer.switch("dispute", account=CONNECTED, charge=intent.latest_charge)
        read = desk.provider.movements(story.payment)
        assert read.capture is not None
        assert [(row.amount, row.operation) for row in read.refunds] == [(2500, None)]
        assert len(read.disputes) == 1
        assert set(desk.provider.changed(since)) == {story.payment.pk}
        assert [(row.payment, row.place) for row in desk.provider.payments(since)] == [
            (story.payment.pk, CONNECTED)
        ]
        lines = list(desk.provider.entries(since))
        assert len(lines) == 3 and {(row.payment, row.account) for row in lines} == {
            (story.payment.pk, CONNECTED)
        }

    def test_whose_event_names_an_intent_of_another_account_is_ignored(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        messages = desk.messages()
        Payment.objects.update(provider_account=CONNECTED)
        assert [told for message in messages for told in desk.provider.parse_notifications(message)] == []

    def test_in_live_mode_ignores_test_events(
        self, desk: StripeDesk, acme: Merchant, settings: Settings
    ) -> None:
        Story(desk, acme).carry_out_preceding(Kind.CAPTURE)
        messages = desk.messages()
        settings.STRIPE_IS_LIVE = True
        assert messages
        assert [told for message in messages for told in desk.provider.parse_notifications(message)] == []


def connected(desk: StripeDesk, merchant: Merchant) -> Story:
    """Return a payment in the merchant's own account."""
    story = Story(desk, merchant)
    token = desk.peer.switch("confirmation_token", card=CARDS[Card.GOOD], account=CONNECTED)["id"]
    Payment.objects.update(provider_account=CONNECTED, card_token=token)
    story.payment.refresh_from_db()
    return story


@pytest.mark.rule("money.late")
def test_the_books_are_read_page_by_page_to_the_end(
    desk: StripeDesk, acme: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    since, made, page = clock.now() - timedelta(hours=1), PaymentIntentService.list, 2

    def listed(of: PaymentIntentService, asked: PaymentIntentListParams) -> Any:
        return made(of, {**asked, "limit": page})

    monkeypatch.setattr(PaymentIntentService, "list", listed)
    stories = [Story(desk, acme) for _ in range(2 * page + 1)]
    for story in stories:
        story.do(Kind.AUTHORIZE)
    told = [row.payment for row in desk.provider.payments(since)]
    assert sorted(told) == sorted(story.payment.pk for story in stories)


class TestAnEventOfAnOlderVersion:
    """An event has the API version of its account or endpoint, which can be older than the version of our requests."""

    @pytest.mark.rule("money.reconciled")
    @pytest.mark.parametrize(
        ("card", "kinds", "said"),
        [
            (Card.GOOD, [Kind.AUTHORIZE, Kind.CAPTURE], {Verdict.SUCCEEDED}),
            (Card.GOOD, [Kind.AUTHORIZE, Kind.VOID], {Verdict.SUCCEEDED}),
            (Card.DECLINED, [Kind.AUTHORIZE], {Verdict.DECLINED}),
        ],
    )
    def test_gives_the_same_notification(
        self, desk: StripeDesk, acme: Merchant, card: Card, kinds: list[Kind], said: set[Verdict]
    ) -> None:
        desk.peer.switch("version", version="2022-08-01")
        story = Story(desk, acme, card)
        for kind in kinds:
            story.do(kind)
        told = [each for row in desk.messages() for each in desk.provider.parse_notifications(row)]
        assert {row.payment for row in told} == {story.payment.pk}
        # In an old API version, Stripe reports a released hold as a refund.
        acts = [row for row in told if row.kind != Kind.REFUND]
        assert {row.kind for row in acts} == set(kinds)
        assert {row.verdict for row in acts} == said

    @pytest.mark.parametrize("lapses", [True, False], ids=["lapsed", "cancelled"])
    def test_shows_no_refund_for_a_released_hold(
        self, desk: StripeDesk, acme: Merchant, lapses: bool
    ) -> None:
        desk.peer.switch("version", version="2024-12-18.acacia")
        story = Story(desk, acme)
        story.do(Kind.AUTHORIZE)
        if lapses:
            desk.peer.switch("advance", seconds=8 * 86400)
        else:
            desk.in_dashboard(Kind.VOID, story.payment, 9000)
        desk.dashboard.v1.payment_intents.retrieve(story.payment.provider_reference)
        sent = {row.type for row in desk.dashboard.v1.events.list().auto_paging_iter()}
        assert {"refund.created", "payment_intent.canceled"} <= sent
        assert desk.provider.movements(story.payment) == Books(refunds=[], disputes=[])


class TestAnError:
    def test_about_a_key_in_use_leaves_the_call_in_progress(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        operation = story.begin(Kind.CAPTURE)
        desk.peer.switch("fault", method="POST", path="/v1/.*/capture", mode="slow", seconds=1.0)
        said: list[Outcome] = []
        first = threading.Thread(target=lambda: said.append(desk.provider.capture(operation, 5.0)))
        first.start()
        time.sleep(0.3)
        second = desk.provider.capture(operation, 5.0)
        first.join()
        assert (second.verdict, second.reason) == (Verdict.UNKNOWN, "")
        assert [outcome.verdict for outcome in said] == [Verdict.SUCCEEDED]

    @pytest.mark.parametrize(
        ("kind", "said"),
        [
            (Kind.AUTHORIZE, (Verdict.FAILED, "provider_refused")),
            (Kind.CAPTURE, (Verdict.UNKNOWN, "")),
            (Kind.VOID, (Verdict.UNKNOWN, "")),
            (Kind.REFUND, (Verdict.UNKNOWN, "")),
        ],
    )
    def test_about_our_own_api_key_moves_no_money(
        self, desk: StripeDesk, acme: Merchant, settings: Settings, kind: Kind, said: tuple[Verdict, str]
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        settings.STRIPE_SECRET_KEY = "sk_test_revoked"
        outcome = story.ask(story.begin(kind))
        assert (outcome.verdict, outcome.reason) == said

    def test_is_not_awaited_after_the_deadline(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        desk.peer.switch("fault", method="POST", path="/v1/.*/capture", mode="hang", seconds=10.0)
        began = time.monotonic()
        with pytest.raises(Exception, match="TimeoutError"):
            desk.provider.capture(story.begin(Kind.CAPTURE), 0.3)
        assert time.monotonic() - began < 9

    @pytest.mark.parametrize(
        ("card", "reason"),
        [
            ("pm_card_visa_chargeDeclinedLostCard", "card_declined"),
            ("pm_card_visa_chargeDeclinedStolenCard", "card_declined"),
            ("pm_card_chargeDeclinedFraudulent", "card_declined"),
            ("pm_card_chargeDeclinedIncorrectCvc", "incorrect_cvc"),
            ("pm_card_visa_chargeDeclinedVelocityLimitExceeded", "insufficient_funds"),
        ],
    )
    def test_of_the_card_hides_reasons_that_are_confidential(
        self, desk: StripeDesk, acme: Merchant, card: str, reason: str
    ) -> None:
        story = Story(desk, acme)
        token = desk.peer.switch("confirmation_token", card=card)["id"]
        Payment.objects.update(card_token=token)
        story.payment.refresh_from_db()
        operation = story.begin(Kind.AUTHORIZE)
        assert story.ask(operation).reason == story.look_up(operation).reason == reason


class TestACardOfAMate:
    @pytest.mark.parametrize(
        ("kind", "verdict"),
        [(Payment.Kind.SHARE, Verdict.NEEDS_ACTION), (Payment.Kind.ORDER, Verdict.SUCCEEDED)],
    )
    def test_requires_3d_secure_where_possible(
        self, desk: StripeDesk, acme: Merchant, kind: Payment.Kind, verdict: Verdict
    ) -> None:
        story = Story(desk, acme)
        token = desk.peer.switch("confirmation_token", card="pm_card_threeDSecureOptional")["id"]
        is_share = kind == Payment.Kind.SHARE
        subject = acme.pk if is_share else story.payment.subject
        Payment.objects.update(card_token=token, kind=kind, subject=subject)
        story.payment.refresh_from_db()
        assert story.ask(story.begin(Kind.AUTHORIZE)).verdict == verdict


class TestDisputes:
    def test_exclude_inquiries(self, desk: StripeDesk, acme: Merchant) -> None:
        """An inquiry does not withdraw money, so its charge can be refunded."""
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.REFUND)
        intent = desk.dashboard.v1.payment_intents.retrieve(story.payment.provider_reference)
        desk.peer.switch("dispute", charge=intent.latest_charge, reason="warning")
        (inquiry,) = desk.provider.movements(story.payment).disputes
        assert list(inquiry.lines) == []
        assert story.do(Kind.REFUND).verdict == Verdict.SUCCEEDED


@pytest.mark.rule("provider.card_page")
class TestTheCardPage:
    def test_has_stripes_fields_and_the_origins_that_they_need(
        self, desk: StripeDesk, settings: Settings
    ) -> None:
        settings.STRIPE_API, settings.STRIPE_SCRIPT = (
            "https://api.stripe.com",
            "https://js.stripe.com/endive/stripe.js",
        )
        form = CardForm(Payment().pk, "https://pay.example/paid", 1500, "JPY", account=CONNECTED)
        page = desk.provider.open_card_form(form)
        assert isinstance(page, CardPage)
        assert (page.context["amount"], page.context["currency"], page.context["account"]) == (
            1500,
            "jpy",
            CONNECTED,
        )
        assert page.allows == {
            "script-src": ["https://js.stripe.com", "https://*.js.stripe.com"],
            "frame-src": ["https://js.stripe.com", "https://*.js.stripe.com", "https://hooks.stripe.com"],
            "connect-src": ["https://api.stripe.com"],
        }
        assert desk.provider.payment_origins == ("https://js.stripe.com",)
        assert "sk_" not in str(page.context)
