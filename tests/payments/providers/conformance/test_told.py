"""What a provider tells unasked: by notifications, which nobody needs to believe, and in its books."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import uuid4

import pytest

from config.lib import clock
from payments import provider
from payments.models import Merchant
from payments.provider import DisputeStatus, ForgedNotification, Notification, Record, Verdict
from tests.checkout.proof.test_invariants import without_guards
from tests.payments.providers.conformance.desk import Card, Desk
from tests.payments.providers.conformance.story import ACTS, Kind, Story


def heard(desk: Desk) -> list[Notification]:
    """Read every message that was sent."""
    return [told for message in desk.messages() for told in desk.provider.parse_notifications(message)]


def records(told: Iterable[Notification]) -> list[Record]:
    return [each.record for each in told if each.record is not None]


def booked(story: Story) -> list[Record]:
    rows = provider.current().records(clock.now() - timedelta(hours=1))
    return [row for row in rows if row.payment == story.payment.pk]


class TestWhatWeDid:
    @pytest.mark.parametrize("kind", ACTS)
    def test_is_told_under_our_key(self, desk: Desk, acme: Merchant, kind: Kind) -> None:
        story = Story(desk, acme)
        story.before(kind)
        desk.messages()
        operation = story.begin(kind)
        story.end(operation, story.ask(operation))
        ours = [record for record in records(heard(desk)) if record.key == operation.pk]
        assert ours and ours[-1].verdict == Verdict.SUCCEEDED
        assert {(row.kind, row.payment, row.account, row.amount, row.currency) for row in ours} == {
            (kind, story.payment.pk, acme.pk, 9000, "GBP")
        }

    def test_stands_in_the_books_once(self, desk: Desk, acme: Merchant) -> None:
        story, keys = Story(desk, acme), {}
        for kind in (Kind.AUTHORIZE, Kind.CAPTURE, Kind.REFUND):
            operation = story.begin(kind)
            assert story.end(operation, story.ask(operation)).verdict == Verdict.SUCCEEDED
            keys[operation.pk] = kind
        rows = booked(story)
        assert {row.key: row.kind for row in rows} == keys and len(rows) == 3
        assert {(row.verdict, row.amount, row.account) for row in rows} == {
            (Verdict.SUCCEEDED, 9000, acme.pk)
        }
        assert not list(provider.current().records(clock.now() + timedelta(minutes=1)))
        of_payment = list(provider.current().refunds_of(story.payment))
        assert of_payment == [row for row in rows if row.kind == Kind.REFUND]

    @pytest.mark.rule("restore.repair")
    def test_can_be_written_again_where_it_was_lost(self, desk: Desk, acme: Merchant) -> None:
        began, story = clock.now(), Story(desk, acme)
        story.do(Kind.AUTHORIZE)
        payment = story.payment
        told = [row for row in provider.current().payments(began) if row.payment == payment.pk]
        assert [(row.account, row.subject, row.amount, row.currency, row.is_moved) for row in told] == [
            (acme.pk, payment.subject, 9000, "GBP", True)
        ]
        assert (told[0].reference, told[0].place) == (payment.provider_reference, payment.provider_account)
        assert told[0].card and (told[0].card.last4, told[0].card.fingerprint) == (
            payment.card_last4,
            payment.card_fingerprint,
        )
        later = provider.current().payments(clock.now() + timedelta(minutes=1))
        assert payment.pk not in {row.payment for row in later}

    @pytest.mark.rule("restore.repair")
    def test_that_was_declined_moved_nothing(self, desk: Desk, acme: Merchant) -> None:
        began, story = clock.now(), Story(desk, acme, Card.DECLINED)
        story.do(Kind.AUTHORIZE)
        told = provider.current().payments(began)
        assert not [row for row in told if row.is_moved and row.payment == story.payment.pk]

    def test_that_was_declined_is_told_and_booked_as_declined(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.NO_MONEY)
        operation = story.begin(Kind.AUTHORIZE)
        story.end(operation, story.ask(operation))
        told = [record for record in records(heard(desk)) if record.key == operation.pk]
        assert (told[-1].verdict, [row.verdict for row in booked(story)]) == (
            Verdict.DECLINED,
            [Verdict.DECLINED],
        )

    def test_is_told_when_the_payer_has_answered(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.ASKS)
        operation = story.begin(Kind.AUTHORIZE)
        story.record(operation, story.ask(operation))
        desk.messages()
        desk.answer(story.payment, confirms=True)
        desk.settle()
        told = [(record.key, record.verdict) for record in records(heard(desk))]
        assert told == [(operation.pk, Verdict.SUCCEEDED)]

    def test_is_told_when_a_settled_refund_has_failed(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.REFUND_FAILS)
        story.before(Kind.REFUND)
        operation = story.begin(Kind.REFUND)
        story.record(operation, story.ask(operation))
        desk.messages()
        desk.settle()
        told = [(record.key, record.verdict) for record in records(heard(desk))]
        assert told[-1] == (operation.pk, Verdict.FAILED)
        assert [row.verdict for row in booked(story) if row.key == operation.pk] == [Verdict.FAILED]


class TestAMessage:
    def test_that_is_read_twice_says_the_same(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.before(Kind.CAPTURE)
        for message in desk.messages():
            first = list(desk.provider.parse_notifications(message))
            assert list(desk.provider.parse_notifications(message)) == first

    def test_that_somebody_else_has_signed_is_refused(self, desk: Desk) -> None:
        with pytest.raises(ForgedNotification):
            list(desk.provider.parse_notifications(desk.forged()))

    def test_about_a_payment_that_we_never_made_moves_nothing(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.before(Kind.CAPTURE)
        messages = desk.messages()
        ours = {row.pk for row in story.payment.operations.all()}
        story.payment.operations.all().delete()
        without_guards("DELETE FROM payments_payment")
        told = [each for message in messages for each in desk.provider.parse_notifications(message)]
        assert messages and not [each for each in told if each.disputed is not None]
        assert {record.key for record in records(told)} <= ours  # whose operation nobody finds


class TestWhatOthersDid:
    @pytest.mark.parametrize(
        ("kind", "amount"), [(Kind.CAPTURE, 9000), (Kind.VOID, 9000), (Kind.REFUND, 2500)]
    )
    def test_in_the_dashboard_is_told_under_a_key_of_its_own(
        self, desk: Desk, acme: Merchant, kind: Kind, amount: int
    ) -> None:
        story = Story(desk, acme)
        story.before(kind)
        desk.messages()
        desk.in_dashboard(kind, story.payment, amount)
        ours = set(story.payment.operations.values_list("pk", flat=True))
        told = [row for row in records(heard(desk)) if row.key not in ours]
        rows = [row for row in booked(story) if row.key not in ours]
        for found in (told, rows):
            assert {(row.kind, row.payment, row.account, row.amount) for row in found} == {
                (kind, story.payment.pk, acme.pk, amount)
            }
        assert {row.key for row in told} == {row.key for row in rows} and len(rows) == 1
        refunds = [row for row in provider.current().refunds_of(story.payment) if row.key not in ours]
        assert refunds == [row for row in rows if row.kind == Kind.REFUND]

    def test_captured_already_is_said_to_our_capture_and_found(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.before(Kind.CAPTURE)
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
    def test_a_dispute_is_told_and_found(self, desk: Desk, acme: Merchant, is_won: bool) -> None:
        story, since = Story(desk, acme, Card.DISPUTED), clock.now() - timedelta(minutes=1)
        story.before(Kind.REFUND)
        desk.messages()
        desk.dispute(story.payment)
        (opened,) = desk.provider.disputes(story.payment)
        assert (opened.amount, opened.currency, opened.status) == (9000, "GBP", DisputeStatus.OPEN)
        assert opened.reason and opened.reference and opened.respond_by is not None
        assert opened.respond_by > opened.opened_at
        refused = story.do(Kind.REFUND)
        assert refused.verdict == Verdict.FAILED and refused.reason
        desk.settle()
        desk.decide(story.payment, is_won=is_won)
        (decided,) = desk.provider.disputes(story.payment)
        assert decided.status == (DisputeStatus.WON if is_won else DisputeStatus.LOST)
        assert decided.reference == opened.reference
        assert {each.disputed for each in heard(desk) if each.disputed} == {story.payment.pk}
        assert set(desk.provider.disputed(since)) == {story.payment.pk}

    def test_a_payment_without_a_dispute_has_none(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        assert list(desk.provider.disputes(story.payment)) == []
        assert uuid4() not in set(desk.provider.disputed(clock.now() - timedelta(days=1)))
