"""Every call of the port has the same outcomes at every provider."""

import pytest

from payments.models import Merchant
from payments.provider import Verdict
from tests.payments.providers.conformance.desk import Card, Desk
from tests.payments.providers.conformance.story import ACTS, Kind, Story, read


@pytest.mark.rule("provider.alike")
class TestMoney:
    def test_is_held_captured_and_refunded(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        for kind in (Kind.AUTHORIZE, Kind.CAPTURE, Kind.REFUND):
            ended = story.do(kind)
            assert (kind, ended.verdict, ended.amount) == (kind, Verdict.SUCCEEDED, 9000)
        assert [(row.amount, row.verdict) for row in read(story).refunds] == [(9000, Verdict.SUCCEEDED)]
        card = (story.payment.card_brand.lower(), story.payment.card_last4)
        assert card == ("visa", "4242") and story.payment.card_fingerprint

    def test_is_held_and_released(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.VOID)
        assert story.do(Kind.VOID).verdict == Verdict.SUCCEEDED
        refused = story.do(Kind.CAPTURE)
        assert refused.verdict == Verdict.FAILED and refused.reason

    def test_that_was_captured_is_neither_released_nor_captured_again(
        self, desk: Desk, acme: Merchant
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.REFUND)
        refused = story.do(Kind.VOID)
        assert (refused.verdict, refused.reason) == (Verdict.FAILED, "already_captured")
        said = story.ask(story.begin(Kind.CAPTURE))
        assert said.verdict == Verdict.SUCCEEDED or said.reason == "already_captured"

    def test_is_refunded_in_parts_up_to_the_captured_amount(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(Kind.REFUND)
        for amount in (2000, 3000):
            assert story.do(Kind.REFUND, amount).verdict == Verdict.SUCCEEDED
        assert story.do(Kind.REFUND, 4001).verdict == Verdict.FAILED
        assert story.do(Kind.REFUND, 4000).verdict == Verdict.SUCCEEDED
        assert story.do(Kind.REFUND, 1).verdict == Verdict.FAILED

    @pytest.mark.parametrize("kind", ACTS[1:])
    def test_that_is_not_held_is_not_moved(self, desk: Desk, acme: Merchant, kind: Kind) -> None:
        refused = Story(desk, acme).do(kind)
        assert refused.verdict == Verdict.FAILED and refused.reason

    def test_held_for_less_than_requested_is_declined(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        desk.hold_less(4500)
        held = story.do(Kind.AUTHORIZE)
        assert (held.verdict, held.reason, held.amount) == (Verdict.DECLINED, "held_for_less", 4500)
        assert story.do(Kind.VOID).verdict == Verdict.SUCCEEDED


class TestACard:
    @pytest.mark.parametrize(
        ("card", "reason"),
        [
            (Card.NO_MONEY, "insufficient_funds"),
            (Card.EXPIRED, "expired_card"),
            (Card.DECLINED, None),
        ],
    )
    def test_is_declined_with_its_reason(
        self, desk: Desk, acme: Merchant, card: Card, reason: str | None
    ) -> None:
        story = Story(desk, acme, card)
        operation = story.begin(Kind.AUTHORIZE)
        said = story.end(operation, story.ask(operation))
        found = story.look_up(operation)
        assert said.verdict == found.verdict == Verdict.DECLINED
        assert said.reason == found.reason == (reason or said.reason) != ""

    def test_token_that_is_unknown_pays_nothing(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme)
        story.payment.card_token = "ctoken_nobody"
        said = story.ask(story.begin(Kind.AUTHORIZE))
        assert said.verdict in (Verdict.DECLINED, Verdict.FAILED) and said.reason

    @pytest.mark.parametrize("confirms", [True, False])
    def test_can_ask_its_payer_for_confirmation(self, desk: Desk, acme: Merchant, confirms: bool) -> None:
        story = Story(desk, acme, Card.ASKS)
        operation = story.begin(Kind.AUTHORIZE)
        asked = story.ask(operation)
        assert asked.verdict == Verdict.NEEDS_ACTION and asked.action_url.startswith("http")
        story.record(operation, asked)
        assert story.look_up(operation).verdict == Verdict.NEEDS_ACTION
        desk.answer(story.payment, confirms=confirms)
        desk.settle()
        found = story.look_up(operation)
        if confirms:
            assert (found.verdict, found.amount) == (Verdict.SUCCEEDED, 9000)
        else:
            assert (found.verdict, found.reason) == (Verdict.DECLINED, "challenge_failed")

    def test_with_an_unanswered_challenge_can_be_given_up(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.ASKS)
        operation = story.begin(Kind.AUTHORIZE)
        story.record(operation, story.ask(operation))
        story.payment.operations.update(state="declined", ended_at="2026-01-01T00:00Z")
        assert story.do(Kind.VOID).verdict == Verdict.SUCCEEDED
        assert story.look_up(operation).verdict != Verdict.SUCCEEDED

    @pytest.mark.rule("pay.confirmed_again")
    @pytest.mark.parametrize("card", [Card.DECLINED, Card.ASKS])
    def test_that_was_declined_has_its_registered_payment_ended(
        self, desk: Desk, acme: Merchant, card: Card
    ) -> None:
        story = Story(desk, acme, card)
        operation = story.begin(Kind.AUTHORIZE)
        if story.record(operation, story.ask(operation)).verdict == Verdict.NEEDS_ACTION:
            desk.answer(story.payment, confirms=False)
        desk.settle()
        declined = story.record(operation, story.look_up(operation))
        ended = story.do(Kind.VOID)
        assert ended.verdict == Verdict.SUCCEEDED or not story.payment.provider_reference
        again = story.look_up(operation)
        assert declined.verdict == again.verdict == Verdict.DECLINED and again.reason == declined.reason

    def test_that_cannot_take_a_refund_fails_it_later(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.REFUND_FAILS)
        story.carry_out_preceding(Kind.REFUND)
        operation = story.begin(Kind.REFUND)
        assert story.ask(operation).verdict in (Verdict.PENDING, Verdict.SUCCEEDED)
        desk.settle()
        failed = story.find(operation)
        assert failed.verdict == Verdict.FAILED and failed.reason
