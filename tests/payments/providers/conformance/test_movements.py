"""The provider's books show every hold, charge, refund and dispute of a payment, and list each changed payment."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from config.lib import clock
from payments import provider
from payments.models import Merchant, Operation
from payments.provider import Books, DisputeRecord, DisputeStatus, ProviderUnreachable, RefundRecord, Verdict
from tests import factories
from tests.payments.providers.conformance.desk import CallFailure, Card, Desk
from tests.payments.providers.conformance.story import Kind, Story, read


def only_refund(story: Story) -> RefundRecord:
    (refund,) = read(story).refunds
    return refund


def only_dispute(story: Story) -> DisputeRecord:
    (dispute,) = read(story).disputes
    return dispute


def captured_payment(desk: Desk, merchant: Merchant, card: Card = Card.GOOD) -> Story:
    """Return a captured payment of 9000 minor units."""
    story = Story(desk, merchant, card)
    story.carry_out_preceding(Kind.REFUND)
    return story


def part(story: Story, amount: int) -> Operation:
    """Begin the operation for one part of a refund."""
    operation = story.begin(Kind.REFUND, amount)
    operation.purpose = Operation.Purpose.REFUND_PART
    operation.refund_uuid = factories.bare_refund(story.payment.merchant, story.payment.checkout_uuid)
    operation.save(update_fields=["purpose", "refund_uuid"])
    return operation


class TestAPayment:
    @pytest.mark.parametrize("card", [None, Card.DECLINED, Card.ASKS])
    def test_without_money_has_empty_books(self, desk: Desk, acme: Merchant, card: Card | None) -> None:
        story = Story(desk, acme, card or Card.GOOD)
        if card is not None:
            operation = story.begin(Kind.AUTHORIZE)
            story.end(operation, story.ask(operation))
        assert read(story) == Books()

    def test_is_held_until_it_is_released(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.VOID)
        assert read(story) == Books(is_held=True)
        story.do(Kind.VOID)
        assert read(story) == Books()

    def test_that_was_captured_is_charged_under_the_reference_of_the_outcome(
        self, desk: Desk, acme: Merchant
    ) -> None:
        story, began = Story(desk, acme), clock.now() - timedelta(minutes=1)
        story.carry_out_preceding(Kind.CAPTURE)
        capture = story.begin(Kind.CAPTURE)
        ended = story.end(capture, story.ask(capture))
        books = read(story)
        assert books.capture is not None and not books.is_held
        assert (books.capture.amount, books.capture.currency) == (9000, "GBP")
        assert books.capture.reference == ended.reference == story.anew(capture.pk).reference != ""
        assert began < books.capture.at <= clock.now() + timedelta(minutes=1)

    def test_that_was_captured_in_the_dashboard_is_charged_under_the_reference_that_a_look_up_finds(
        self, desk: Desk, acme: Merchant
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        desk.in_dashboard(Kind.CAPTURE, story.payment, 9000)
        charged = read(story).capture
        capture = story.begin(Kind.CAPTURE)
        story.ask(capture)
        assert charged is not None and charged.amount == 9000
        assert story.look_up(capture).reference == charged.reference

    def test_whose_books_cannot_be_read_is_unreachable_and_not_empty(
        self, desk: Desk, acme: Merchant
    ) -> None:
        story = captured_payment(desk, acme)
        for failure in (CallFailure.SILENT, CallFailure.ERROR):
            desk.make_calls_fail("movements", failure)
            with pytest.raises(ProviderUnreachable):
                provider.current_provider().movements(story.payment)
            assert read(story).capture is not None


class TestOurRefund:
    def test_names_our_operation_under_the_reference_of_its_outcome(self, desk: Desk, acme: Merchant) -> None:
        story, ended = captured_payment(desk, acme), {}
        for amount in (2000, 3000):
            operation = part(story, amount)
            ended[operation.pk] = (operation, story.end(operation, story.ask(operation)))
        refunds = read(story).refunds
        assert {row.operation for row in refunds} == set(ended) and len(refunds) == 2
        for row in refunds:
            assert row.operation is not None
            operation, outcome = ended[row.operation]
            assert (row.amount, row.currency, row.verdict) == (operation.amount, "GBP", Verdict.SUCCEEDED)
            assert row.reference == outcome.reference == story.anew(operation.pk).reference
            assert row.refund in (operation.refund_uuid, None) and row.share is None
            assert not row.has_returned

    def test_is_there_while_it_is_pending_and_fails_under_the_same_reference(
        self, desk: Desk, acme: Merchant
    ) -> None:
        story = captured_payment(desk, acme, Card.REFUND_FAILS)
        operation = part(story, 4000)
        accepted = story.ask(operation)
        story.record(operation, accepted)
        began = only_refund(story)
        assert (began.operation, began.verdict) == (operation.pk, accepted.verdict)
        assert began.reference == accepted.reference
        desk.settle()
        failed = only_refund(story)
        assert (failed.reference, failed.operation, failed.amount) == (began.reference, operation.pk, 4000)
        assert failed.verdict == Verdict.FAILED and failed.reason
        assert failed.has_returned or accepted.verdict == Verdict.PENDING

    def test_whose_answer_got_lost_is_found(self, desk: Desk, acme: Merchant) -> None:
        story = captured_payment(desk, acme)
        operation = part(story, 4000)
        desk.make_calls_fail("refund", CallFailure.DONE_SILENT)
        story.ask(operation)
        desk.settle()
        found = only_refund(story)
        assert (found.operation, found.verdict) == (operation.pk, Verdict.SUCCEEDED)
        assert story.find(operation).reference == found.reference

    def test_that_is_returned_is_marked_as_returned(self, desk: Desk, acme: Merchant) -> None:
        story = captured_payment(desk, acme)
        operation = part(story, 4000)
        ended = story.end(operation, story.ask(operation))
        desk.return_refund(ended.reference)
        found = only_refund(story)
        assert (found.reference, found.operation, found.amount) == (ended.reference, operation.pk, 4000)
        assert (found.verdict, found.has_returned) == (Verdict.FAILED, True)
        assert found.reason


class TestADashboardRefund:
    def test_names_no_operation(self, desk: Desk, acme: Merchant) -> None:
        story = captured_payment(desk, acme)
        desk.refund_outside(story.payment, 2500)
        found = only_refund(story)
        assert (found.operation, found.refund, found.share) == (None, None, None)
        assert (found.amount, found.currency, found.verdict) == (2500, "GBP", Verdict.SUCCEEDED)
        assert found.reference and not found.has_returned

    @pytest.mark.parametrize(
        ("card", "ends"), [(Card.GOOD, Verdict.SUCCEEDED), (Card.REFUND_FAILS, Verdict.FAILED)]
    )
    def test_is_pending_until_it_settles_or_fails(
        self, desk: Desk, acme: Merchant, card: Card, ends: Verdict
    ) -> None:
        story = captured_payment(desk, acme, card)
        desk.refund_outside(story.payment, 2500, pending=True)
        pending = only_refund(story)
        assert (pending.operation, pending.verdict) == (None, Verdict.PENDING)
        desk.settle()
        ended = only_refund(story)
        assert (ended.reference, ended.operation, ended.verdict) == (pending.reference, None, ends)

    def test_is_listed_next_to_ours(self, desk: Desk, acme: Merchant) -> None:
        story = captured_payment(desk, acme)
        ours = part(story, 4000)
        story.end(ours, story.ask(ours))
        desk.refund_outside(story.payment, 2500)
        refunds = read(story).refunds
        assert {(row.operation, row.amount) for row in refunds} == {(ours.pk, 4000), (None, 2500)}
        assert len({row.reference for row in refunds}) == len(refunds) == 2


class TestADispute:
    @pytest.mark.parametrize("is_won", [True, False])
    def test_withdraws_the_money_and_returns_it_only_if_it_is_won(
        self, desk: Desk, acme: Merchant, is_won: bool
    ) -> None:
        story, began = captured_payment(desk, acme, Card.DISPUTED), clock.now() - timedelta(minutes=1)
        desk.dispute(story.payment)
        opened = only_dispute(story)
        assert (opened.amount, opened.currency, opened.status) == (9000, "GBP", DisputeStatus.OPEN)
        assert [line.is_back for line in opened.lines] == [False]
        desk.decide(story.payment, is_won=is_won)
        decided = only_dispute(story)
        assert decided.reference == opened.reference
        assert decided.status == (DisputeStatus.WON if is_won else DisputeStatus.LOST)
        assert list(decided.lines[:1]) == list(opened.lines)
        assert [line.is_back for line in decided.lines[1:]] == ([True] if is_won else [])
        assert len({line.reference for line in decided.lines}) == len(decided.lines)
        assert all(began < line.at <= clock.now() + timedelta(minutes=1) for line in decided.lines)
        assert decided.unknown_status == ""

    def test_can_be_for_a_part(self, desk: Desk, acme: Merchant) -> None:
        story = captured_payment(desk, acme)
        desk.dispute(story.payment, 4000)
        found = only_dispute(story)
        assert (found.amount, [line.is_back for line in found.lines]) == (4000, [False])


class TestChanged:
    def test_names_the_payment_after_each_act(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        acts: list[Callable[[], object]] = [
            lambda: story.do(Kind.AUTHORIZE),
            lambda: story.do(Kind.CAPTURE),
            lambda: story.do(Kind.REFUND, 4000),
            lambda: desk.return_refund(only_refund(story).reference),
            lambda: desk.refund_outside(story.payment, 2500, pending=True),
            desk.settle,
            lambda: desk.dispute(story.payment, 1000),
            lambda: desk.decide(story.payment, is_won=True),
        ]
        for number, act in enumerate(acts):
            since = clock.now()
            act()
            assert story.payment.pk in set(provider.current_provider().changed(since)), number
