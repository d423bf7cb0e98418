"""Notifications name the right payment and outcome, and the provider's books contain the same operations.

The service does not rely on notifications.
"""

from datetime import timedelta

import pytest

from config.lib import clock
from payments import provider
from payments.models import Merchant, Operation
from payments.provider import ForgedNotification, Notification, Verdict
from tests.checkout.proof.tampering import without_guards
from tests.payments.providers.conformance.desk import Card, Desk
from tests.payments.providers.conformance.story import ACTS, Kind, Story, read


def all_notifications(desk: Desk) -> list[Notification]:
    """Return the notifications in all messages that the provider has sent."""
    return [
        notification
        for message in desk.messages()
        for notification in desk.provider.parse_notifications(message)
    ]


def notifications_about(desk: Desk, story: Story) -> list[Notification]:
    """Return the notifications in all sent messages. Check that they are about this payment."""
    found = all_notifications(desk)
    assert {notification.payment for notification in found} == {story.payment.pk}
    return found


def fits(notification: Notification, operation: Operation, *ends: Verdict) -> bool:
    """Return whether a notification fits this operation and one of these outcomes.

    A notification need not name the operation, its kind or the outcome. A part that it does not name counts as
    fitting.
    """
    is_named = notification.kind in ("", operation.kind) and notification.operation in (None, operation.pk)
    return is_named and notification.verdict in (*ends, Verdict.UNKNOWN)


class TestOurOperations:
    @pytest.mark.parametrize("kind", ACTS)
    def test_are_reported_for_our_payment(self, desk: Desk, acme: Merchant, kind: Kind) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        desk.messages()
        operation = story.begin(kind)
        story.end(operation, story.ask(operation))
        assert fits(notifications_about(desk, story)[-1], operation, Verdict.SUCCEEDED)

    @pytest.mark.rule("restore.repair")
    def test_are_listed_so_that_a_lost_payment_can_be_rebuilt(self, desk: Desk, acme: Merchant) -> None:
        began, story = clock.now(), Story(desk, acme)
        story.do(Kind.AUTHORIZE)
        payment = story.payment
        payments = [row for row in provider.current_provider().payments(began) if row.payment == payment.pk]
        assert [(row.account, row.subject, row.amount, row.currency, row.is_moved) for row in payments] == [
            (acme.pk, payment.subject, 9000, "GBP", True)
        ]
        assert (payments[0].reference, payments[0].place) == (
            payment.provider_reference,
            payment.provider_account,
        )
        assert payments[0].card and (payments[0].card.last4, payments[0].card.fingerprint) == (
            payment.card_last4,
            payment.card_fingerprint,
        )
        later = provider.current_provider().payments(clock.now() + timedelta(minutes=1))
        assert payment.pk not in {row.payment for row in later}

    @pytest.mark.rule("restore.repair")
    def test_that_are_declined_move_no_money(self, desk: Desk, acme: Merchant) -> None:
        began, story = clock.now(), Story(desk, acme, Card.DECLINED)
        story.do(Kind.AUTHORIZE)
        payments = provider.current_provider().payments(began)
        assert not [row for row in payments if row.is_moved and row.payment == story.payment.pk]

    def test_that_are_declined_are_reported_as_declined(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.NO_MONEY)
        operation = story.begin(Kind.AUTHORIZE)
        story.end(operation, story.ask(operation))
        assert fits(notifications_about(desk, story)[-1], operation, Verdict.DECLINED)

    def test_are_reported_when_the_payer_has_answered(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.ASKS)
        operation = story.begin(Kind.AUTHORIZE)
        story.record(operation, story.ask(operation))
        desk.messages()
        desk.answer(story.payment, confirms=True)
        desk.settle()
        (notification,) = notifications_about(desk, story)
        assert fits(notification, operation, Verdict.SUCCEEDED)

    def test_are_reported_when_a_settled_refund_has_failed(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.REFUND_FAILS)
        story.carry_out_preceding(Kind.REFUND)
        operation = story.begin(Kind.REFUND)
        story.record(operation, story.ask(operation))
        desk.messages()
        desk.settle()
        assert fits(notifications_about(desk, story)[-1], operation, Verdict.FAILED)


class TestAMessage:
    def test_that_is_read_twice_gives_the_same_result(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        for message in desk.messages():
            first = list(desk.provider.parse_notifications(message))
            assert list(desk.provider.parse_notifications(message)) == first

    def test_with_a_forged_signature_is_refused(self, desk: Desk) -> None:
        with pytest.raises(ForgedNotification):
            list(desk.provider.parse_notifications(desk.forged()))

    def test_about_a_lost_payment_names_this_payment_or_none(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        messages = desk.messages()
        story.payment.operations.all().delete()
        without_guards("DELETE FROM payments_payment")
        notifications = [each for message in messages for each in desk.provider.parse_notifications(message)]
        assert messages and {each.payment for each in notifications} <= {story.payment.pk}


class TestOperationsByOthers:
    @pytest.mark.parametrize(
        ("kind", "amount"), [(Kind.CAPTURE, 9000), (Kind.VOID, 9000), (Kind.REFUND, 2500)]
    )
    def test_in_the_dashboard_are_reported_without_our_operation(
        self, desk: Desk, acme: Merchant, kind: Kind, amount: int
    ) -> None:
        story, since = Story(desk, acme), clock.now()
        story.carry_out_preceding(kind)
        desk.messages()
        desk.in_dashboard(kind, story.payment, amount)
        ours = set(story.payment.operations.values_list("pk", flat=True))
        notifications = notifications_about(desk, story)
        assert notifications[-1].kind in ("", kind) and not ours & {each.operation for each in notifications}
        assert story.payment.pk in set(provider.current_provider().changed(since))

    def test_like_an_earlier_capture_make_our_capture_fail_and_are_found(
        self, desk: Desk, acme: Merchant
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.CAPTURE)
        desk.in_dashboard(Kind.CAPTURE, story.payment, 9000)
        operation = story.begin(Kind.CAPTURE)
        said = story.ask(operation)
        assert (said.verdict, said.reason) in [
            (Verdict.FAILED, "already_captured"),
            (Verdict.SUCCEEDED, ""),
        ]
        found = story.look_up(operation)
        assert (found.verdict, found.amount) == (Verdict.SUCCEEDED, 9000)

    @pytest.mark.parametrize("is_won", [True, False])
    def test_like_a_dispute_are_reported_and_block_refunds(
        self, desk: Desk, acme: Merchant, is_won: bool
    ) -> None:
        story = Story(desk, acme, Card.DISPUTED)
        story.carry_out_preceding(Kind.REFUND)
        desk.dispute(story.payment)
        assert "" in {each.kind for each in notifications_about(desk, story)}, "opened"
        (opened,) = read(story).disputes
        assert opened.reason and opened.reference and opened.respond_by is not None
        assert opened.respond_by > opened.opened_at
        refused = story.do(Kind.REFUND)
        assert refused.verdict == Verdict.FAILED and refused.reason
        desk.settle()
        desk.decide(story.payment, is_won=is_won)
        assert "" in {each.kind for each in notifications_about(desk, story)}, "decided"
