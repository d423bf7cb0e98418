"""The adapter reads the books of one payment from a test double that is stricter than Stripe."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from payments.models import Merchant, Operation, Payment
from payments.provider import Books, DisputeRecord, DisputeStatus, ProviderUnreachable, RefundRecord, Verdict
from tests import factories
from tests.payments.providers.conformance.desk import Card
from tests.payments.providers.conformance.story import Kind, Story
from tests.payments.providers.conformance.stripe import CARDS, StripeDesk

SEEDS = range(4)
CONNECTED, OTHER = "acct_connected1", "acct_connected2"
OPEN, WON, LOST = DisputeStatus.OPEN, DisputeStatus.WON, DisputeStatus.LOST
TAKEN, BACK = False, True


def captured(
    desk: StripeDesk, merchant: Merchant, account: str = "", amount: int = 9000, currency: str = "GBP"
) -> Story:
    """Return a captured payment in the given account."""
    story = Story(desk, merchant, amount=amount, currency=currency)
    if account:
        token = desk.peer.switch("confirmation_token", account=account, card=CARDS[Card.GOOD])["id"]
        Payment.objects.filter(pk=story.payment.pk).update(provider_account=account, card_token=token)
        story.payment.refresh_from_db()
    story.carry_out_preceding(Kind.REFUND)
    return story


def refund(story: Story, amount: int, **purpose: Any) -> Operation:
    """Refund an amount. `purpose` decides whether this is a refund part or a reimbursement."""
    operation = story.begin(Kind.REFUND, amount)
    for name, value in purpose.items():
        setattr(operation, name, value)
    operation.save()
    story.record(operation, story.ask(operation))
    return operation


def read(desk: StripeDesk, story: Story) -> Books:
    return desk.provider.movements(story.payment)


def only_refund(desk: StripeDesk, story: Story) -> RefundRecord:
    (found,) = read(desk, story).refunds
    return found


def only_dispute(desk: StripeDesk, story: Story) -> DisputeRecord:
    (found,) = read(desk, story).disputes
    return found


def charge_of(desk: StripeDesk, story: Story, account: str | None = None) -> str:
    intents = desk.peer.client(account=account).v1.payment_intents
    return str(intents.retrieve(story.payment.provider_reference).latest_charge)


def dispute(desk: StripeDesk, story: Story, **differs: Any) -> str:
    return str(desk.peer.switch("dispute", charge=charge_of(desk, story), **differs)["id"])


def lines_of(found: DisputeRecord) -> list[bool]:
    return [line.is_back for line in found.lines]


class TestACapture:
    def test_has_the_charge_as_its_reference_by_every_way(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        capture = story.begin(Kind.CAPTURE)
        said = story.ask(capture)
        found = read(desk, story)
        assert found.capture is not None and not found.is_held
        assert said.reference == story.look_up(capture).reference == found.capture.reference
        assert found.capture.reference.startswith("ch_")

    def test_has_the_amount_that_was_taken_of_a_larger_hold(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        desk.dashboard.v1.payment_intents.capture(
            story.payment.provider_reference, {"amount_to_capture": 700}
        )
        found = read(desk, story)
        assert found.capture is not None and (found.capture.amount, found.capture.currency) == (700, "GBP")
        assert found.refunds == []

    @pytest.mark.parametrize(("currency", "amount"), [("KWD", 12340), ("ISK", 900), ("JPY", 500)])
    def test_is_in_our_minor_units(
        self, desk: StripeDesk, acme: Merchant, currency: str, amount: int
    ) -> None:
        story = captured(desk, acme, amount=amount, currency=currency)
        refund(story, amount)
        dispute(desk, story)
        found = read(desk, story)
        facts = [
            (row.amount, row.currency) for row in (found.capture, *found.refunds, *found.disputes) if row
        ]
        assert facts == [(amount, currency)] * 3

    def test_is_dated_by_its_line_of_the_balance(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        desk.peer.switch("advance", seconds=3 * 86400)
        story.do(Kind.CAPTURE)
        charge = desk.dashboard.v1.charges.retrieve(charge_of(desk, story))
        found = read(desk, story).capture
        assert found is not None
        assert found.at - datetime.fromtimestamp(charge.created, UTC) >= timedelta(days=3)

    def test_without_its_balance_line_yet_is_included(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme)
        given: Any = {"amount": 9000, "currency": "gbp", "payment_method": "pm_card_visa", "confirm": True}
        paid = desk.dashboard.v1.payment_intents.create(given | {"return_url": "https://shop.example"})
        Payment.objects.filter(pk=story.payment.pk).update(provider_reference=paid.id)
        story.payment.refresh_from_db()
        found = read(desk, story).capture
        assert found is not None and (found.reference, found.amount) == (paid.latest_charge, 9000)


class TestAHold:
    def test_of_a_second_card_after_a_decline_is_included(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.DECLINED)
        assert story.do(Kind.AUTHORIZE).verdict == Verdict.DECLINED
        assert read(desk, story) == Books(refunds=[], disputes=[])
        intents = desk.dashboard.v1.payment_intents
        given: Any = {"payment_method": "pm_card_visa", "return_url": "https://shop.example"}
        intents.confirm(story.payment.provider_reference, given)
        assert read(desk, story).is_held

    def test_confirmed_after_a_failed_challenge_is_included(self, desk: StripeDesk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.ASKS)
        operation = story.begin(Kind.AUTHORIZE)
        story.record(operation, story.ask(operation))
        desk.answer(story.payment, confirms=False)
        assert not read(desk, story).is_held
        given: Any = {"payment_method": "pm_card_visa", "return_url": "https://shop.example"}
        desk.dashboard.v1.payment_intents.confirm(story.payment.provider_reference, given)
        assert read(desk, story).is_held

    @pytest.mark.parametrize("lapses", [True, False])
    def test_that_was_released_is_no_refund(self, desk: StripeDesk, acme: Merchant, lapses: bool) -> None:
        story = Story(desk, acme)
        story.do(Kind.AUTHORIZE)
        if lapses:
            desk.peer.switch("advance", seconds=8 * 86400)
        else:
            desk.in_dashboard(Kind.VOID, story.payment, 9000)
        assert read(desk, story) == Books(refunds=[], disputes=[])

    def test_that_was_never_registered_costs_no_request(
        self, desk: StripeDesk, acme: Merchant, settings: Settings
    ) -> None:
        story = Story(desk, acme)
        settings.STRIPE_API = "http://127.0.0.1:1"
        assert read(desk, story) == Books()


class TestARefund:
    @pytest.mark.parametrize(
        ("purpose", "name"), [("refund_part", "refund_uuid"), ("reimbursement", "share_uuid")]
    )
    def test_of_ours_has_its_purpose(self, desk: StripeDesk, acme: Merchant, purpose: str, name: str) -> None:
        story = captured(desk, acme)
        order = story.payment.checkout_uuid
        wanted = factories.bare_refund(acme, order) if name == "refund_uuid" else factories.bare_share(order)
        operation = refund(story, 4000, purpose=purpose, **{name: wanted})
        found = only_refund(desk, story)
        assert (found.operation, found.amount, found.verdict) == (operation.pk, 4000, Verdict.SUCCEEDED)
        assert (found.refund, found.share) == ((wanted, None) if name == "refund_uuid" else (None, wanted))
        assert found.reference == story.anew(operation.pk).reference

    @pytest.mark.parametrize("written", ["no uuid", "x" * 500])
    def test_with_foreign_metadata_is_not_ours(self, desk: StripeDesk, acme: Merchant, written: str) -> None:
        story = captured(desk, acme)
        names = dict.fromkeys(("operation", "refund", "share", "note"), written)
        given: Any = {"payment_intent": story.payment.provider_reference, "amount": 500, "metadata": names}
        desk.dashboard.v1.refunds.create(given)
        found = only_refund(desk, story)
        assert (found.operation, found.refund, found.share) == (None, None, None)

    @pytest.mark.parametrize("reason", ["processing", "charge_pending", "insufficient_funds"])
    def test_in_a_waiting_status_is_pending(self, desk: StripeDesk, acme: Merchant, reason: str) -> None:
        story = captured(desk, acme)
        desk.peer.switch("pending_refund", reason=reason)
        operation = refund(story, 4000)
        found = only_refund(desk, story)
        assert (found.operation, found.verdict, found.reason) == (operation.pk, Verdict.PENDING, "")
        desk.settle()
        assert only_refund(desk, story) == replace(found, verdict=Verdict.SUCCEEDED)

    @pytest.mark.parametrize(
        ("status", "reason"), [("failed", "expired_or_canceled_card"), ("canceled", "merchant_request")]
    )
    @pytest.mark.parametrize("by_us", [True, False])
    def test_that_settled_and_came_back_is_marked_as_returned(
        self, desk: StripeDesk, acme: Merchant, status: str, reason: str, by_us: bool
    ) -> None:
        story = captured(desk, acme)
        if by_us:
            refund(story, 4000)
        else:
            desk.refund_outside(story.payment, 4000)
        settled = only_refund(desk, story)
        desk.peer.switch("end_refund", refund=settled.reference, status=status)
        returned = replace(settled, verdict=Verdict.FAILED, reason=reason, has_returned=True)
        assert only_refund(desk, story) == returned

    def test_that_failed_before_it_took_money_has_not_returned(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        story = captured(desk, acme)
        desk.peer.switch("pending_refund", reason="insufficient_funds")
        refund(story, 4000)
        desk.peer.switch("end_refund", refund=only_refund(desk, story).reference, status="failed")
        found = only_refund(desk, story)
        assert (found.verdict, found.has_returned) == (Verdict.FAILED, False)

    @pytest.mark.parametrize("status", ["requires_action", "on_its_way"])
    def test_in_another_status_is_pending(self, desk: StripeDesk, acme: Merchant, status: str) -> None:
        story = captured(desk, acme)
        refund(story, 4000)
        desk.peer.switch("show", thing=only_refund(desk, story).reference, fields={"status": status})
        assert only_refund(desk, story).verdict == Verdict.PENDING

    @pytest.mark.parametrize("seed", SEEDS)
    def test_among_many_is_read_from_pages_of_any_size(
        self, desk: StripeDesk, acme: Merchant, seed: int
    ) -> None:
        desk.peer.switch("clear", seed=seed)
        story = captured(desk, acme, CONNECTED)
        for _ in range(9):
            refund(story, 100)
        asks = desk.peer.client(account=CONNECTED)
        for _ in range(9):
            asks.v1.refunds.create({"payment_intent": story.payment.provider_reference, "amount": 10})
        found = read(desk, story).refunds
        assert len({row.reference for row in found}) == len(found) == 18
        ours = set(story.payment.operations.filter(kind=Kind.REFUND).values_list("pk", flat=True))
        assert {row.operation for row in found if row.amount == 100} == ours
        assert {row.operation for row in found if row.amount == 10} == {None}


class TestADispute:
    @pytest.mark.parametrize(
        ("statuses", "stands", "moved"),
        [
            ([], OPEN, [TAKEN]),
            (["under_review"], OPEN, [TAKEN]),
            (["won"], WON, [TAKEN, BACK]),
            (["lost"], LOST, [TAKEN]),
            (["lost", "appeal_needs_response"], OPEN, [TAKEN]),
            (["lost", "appeal_under_review"], OPEN, [TAKEN]),
            (["lost", "appeal_under_review", "won"], WON, [TAKEN, BACK]),
            (["won", "appeal_under_review", "lost"], LOST, [TAKEN, BACK, TAKEN]),
        ],
    )
    def test_has_the_status_and_lines_of_its_history(
        self,
        desk: StripeDesk,
        acme: Merchant,
        statuses: list[str],
        stands: DisputeStatus,
        moved: list[bool],
    ) -> None:
        story = captured(desk, acme)
        opened = dispute(desk, story)
        for status in statuses:
            desk.peer.switch("advance", seconds=1)
            desk.peer.switch("decide", dispute=opened, status=status)
        found = only_dispute(desk, story)
        assert (found.reference, found.status, lines_of(found)) == (opened, stands, moved)
        assert (found.unknown_status, len({line.reference for line in found.lines})) == ("", len(moved))
        assert [line.at for line in found.lines] == sorted(line.at for line in found.lines)

    @pytest.mark.parametrize("status", ["warning_needs_response", "warning_under_review"])
    @pytest.mark.parametrize("withdraws", [True, False])
    def test_that_is_an_inquiry_is_open_with_a_line_if_it_took_money(
        self, desk: StripeDesk, acme: Merchant, status: str, withdraws: bool
    ) -> None:
        story = captured(desk, acme)
        dispute(desk, story, reason="warning", status=status, withdraws=withdraws)
        found = only_dispute(desk, story)
        assert (found.status, lines_of(found)) == (OPEN, [TAKEN] if withdraws else [])

    @pytest.mark.parametrize("status", ["warning_closed", "prevented"])
    @pytest.mark.parametrize(
        ("moves", "stands"), [([], WON), ([TAKEN], LOST), ([TAKEN, BACK], WON), ([TAKEN, BACK, TAKEN], LOST)]
    )
    def test_that_ended_undecided_counts_for_the_side_that_has_the_money(
        self, desk: StripeDesk, acme: Merchant, status: str, moves: list[bool], stands: DisputeStatus
    ) -> None:
        story = captured(desk, acme)
        opened = dispute(desk, story, status=status, withdraws=False)
        for is_back in moves:
            desk.peer.switch("advance", seconds=1)
            desk.peer.switch("move_dispute", dispute=opened, is_back=is_back)
        found = only_dispute(desk, story)
        assert (found.status, lines_of(found), found.unknown_status) == (stands, moves, "")

    def test_in_a_status_that_is_not_known_is_open(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        dispute(desk, story, status="arbitration")
        found = only_dispute(desk, story)
        assert (found.status, found.unknown_status) == (OPEN, "arbitration")

    def test_whose_money_is_not_withdrawn_yet_has_no_line(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        opened = dispute(desk, story, withdraws=False)
        assert (only_dispute(desk, story).status, only_dispute(desk, story).lines) == (OPEN, [])
        desk.peer.switch("move_dispute", dispute=opened, is_back=False)
        assert lines_of(only_dispute(desk, story)) == [TAKEN]

    @pytest.mark.parametrize("amount", [2500, 11000])
    def test_has_its_own_amount_also_above_the_charges(
        self, desk: StripeDesk, acme: Merchant, amount: int
    ) -> None:
        story = captured(desk, acme)
        desk.dispute(story.payment, amount)
        found = only_dispute(desk, story)
        assert (found.amount, found.currency, lines_of(found)) == (amount, "GBP", [TAKEN])

    def test_has_its_amount_in_the_payments_currency(self, desk: StripeDesk, acme: Merchant) -> None:
        desk.peer.switch("settle_in", currency="usd", rate=1.3)
        story = captured(desk, acme)
        desk.dispute(story.payment)
        desk.peer.switch("settle_in", currency="usd", rate=1.1)
        desk.decide(story.payment, is_won=True)
        found = read(desk, story)
        (row,) = found.disputes
        assert (row.amount, row.currency, lines_of(row)) == (9000, "GBP", [TAKEN, BACK])
        assert found.capture is not None and found.capture.amount == 9000

    def test_after_a_partial_refund_has_a_line_with_the_amount_that_moved(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        story = captured(desk, acme)
        reference = dispute(desk, story, withdraws=False)
        for is_back, amount in ((False, 6000), (True, 4000)):
            desk.peer.switch("move_dispute", dispute=reference, is_back=is_back, amount=amount)
        found = only_dispute(desk, story)
        assert found.amount == 9000 and [line.amount for line in found.lines] == [6000, 4000]

    def test_has_no_line_for_a_fee(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        opened = dispute(desk, story)
        (taken,) = desk.dashboard.v1.disputes.retrieve(opened).to_dict()["balance_transactions"]
        fees = [taken | {"id": "txn_fee", "amount": -1500, "reporting_category": "fee"}]
        fees.append(taken | {"id": "txn_nothing", "amount": 0})
        desk.peer.switch("show", thing=opened, fields={"balance_transactions": [*fees, taken]})
        assert [line.reference for line in only_dispute(desk, story).lines] == [taken["id"]]

    def test_takes_money_before_it_gives_it_back_in_one_second(
        self, desk: StripeDesk, acme: Merchant
    ) -> None:
        story = captured(desk, acme)
        opened = dispute(desk, story)
        (taken,) = desk.dashboard.v1.disputes.retrieve(opened).to_dict()["balance_transactions"]
        lines = [taken | {"id": "txn_a", "amount": 9000}, taken | {"id": "txn_b"}]
        desk.peer.switch("show", thing=opened, fields={"balance_transactions": lines})
        assert lines_of(only_dispute(desk, story)) == [TAKEN, BACK]

    def test_that_allows_no_evidence_has_no_deadline(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme)
        opened = dispute(desk, story)
        assert only_dispute(desk, story).respond_by is not None
        details = {"due_by": 0, "has_evidence": False, "past_due": False, "submission_count": 0}
        desk.peer.switch("show", thing=opened, fields={"evidence_details": details})
        assert only_dispute(desk, story).respond_by is None


class TestUnreadableBooks:
    @pytest.mark.parametrize("path", ["/v1/payment_intents/.*", "/v1/refunds", "/v1/disputes"])
    @pytest.mark.parametrize("status", [500, 429])
    def test_are_unreachable_and_never_treated_as_empty(
        self, desk: StripeDesk, acme: Merchant, path: str, status: int
    ) -> None:
        story = captured(desk, acme)
        desk.peer.switch("fault", method="GET", path=path, mode="error", status=status)
        with pytest.raises(ProviderUnreachable):
            read(desk, story)
        assert read(desk, story).capture is not None

    def test_in_another_account_are_unreachable(self, desk: StripeDesk, acme: Merchant) -> None:
        story = captured(desk, acme, CONNECTED)
        for account in (OTHER, "acct_closed"):
            Payment.objects.filter(pk=story.payment.pk).update(provider_account=account)
            story.payment.refresh_from_db()
            with pytest.raises(ProviderUnreachable):
                read(desk, story)
