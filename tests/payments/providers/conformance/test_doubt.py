"""After lost answers, errors or forgotten keys, the outcome can be looked up, and no call takes effect twice."""

import pytest

from payments.models import Merchant, Operation
from payments.provider import Verdict
from tests.payments.providers.conformance.desk import CallFailure, Card, Desk
from tests.payments.providers.conformance.story import ACTS, Kind, Story, read

DONE = (CallFailure.DONE_SILENT, CallFailure.DONE_ERROR)
UNDONE = (CallFailure.SILENT, CallFailure.ERROR, CallFailure.REPLAYED_ERROR)


def is_done_once(story: Story, operation: Operation) -> bool:
    """Return whether the books show this operation exactly once, and no other operation."""
    books = read(story)
    moved = [(Kind.REFUND, row.amount) for row in books.refunds]
    if books.capture is not None and operation.kind != Kind.REFUND:
        moved.append((Kind.CAPTURE, books.capture.amount))
    if operation.kind in (Kind.AUTHORIZE, Kind.VOID):
        return moved == [] and books.is_held == (operation.kind == Kind.AUTHORIZE)
    return moved == [(operation.kind, operation.amount)] and not books.is_held


@pytest.mark.parametrize("kind", ACTS)
class TestACall:
    def test_repeated_under_its_key_is_carried_out_once(self, desk: Desk, acme: Merchant, kind: Kind) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        operation = story.begin(kind, 4000 if kind == Kind.REFUND else 0)
        first = story.ask(operation)
        assert [story.ask(operation).verdict for _ in range(2)] == [first.verdict] * 2
        assert story.end(operation, first).verdict == Verdict.SUCCEEDED
        assert is_done_once(story, operation)

    @pytest.mark.parametrize("failure", DONE)
    def test_that_was_carried_out_is_found(
        self, desk: Desk, acme: Merchant, kind: Kind, failure: CallFailure
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        operation = story.begin(kind)
        desk.make_calls_fail(kind, failure)
        said = story.ask(operation)
        assert (said.verdict, said.reason) == (Verdict.UNKNOWN, "")
        found = story.end(operation, story.find(operation))
        assert found.verdict == Verdict.SUCCEEDED
        assert found.amount in (9000, None)
        assert is_done_once(story, operation)

    @pytest.mark.parametrize("failure", UNDONE)
    def test_that_was_not_carried_out_is_ruled_out_by_the_provider(
        self, desk: Desk, acme: Merchant, kind: Kind, failure: CallFailure
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        operation = story.begin(kind)
        desk.make_calls_fail(kind, failure)
        said = story.ask(operation)
        assert (said.verdict, said.reason) == (Verdict.UNKNOWN, "")
        found = story.find(operation)
        assert (found.verdict, found.is_vouched) == (Verdict.NOT_FOUND, True)
        again = story.ask(operation)
        if failure == CallFailure.REPLAYED_ERROR:
            assert (again.verdict, again.reason) == (Verdict.UNKNOWN, "")
        else:
            assert story.end(operation, again).verdict == Verdict.SUCCEEDED
            assert is_done_once(story, operation)

    def test_is_found_when_its_key_is_long_forgotten(self, desk: Desk, acme: Merchant, kind: Kind) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        operation = story.begin(kind)
        desk.make_calls_fail(kind, CallFailure.DONE_SILENT)
        story.ask(operation)
        desk.age_keys()
        story.age_operations()
        assert story.end(operation, story.find(operation)).verdict == Verdict.SUCCEEDED

    def test_that_is_not_looked_up_in_time_stays_unknown(
        self, desk: Desk, acme: Merchant, kind: Kind
    ) -> None:
        story = Story(desk, acme)
        story.carry_out_preceding(kind)
        operation = story.begin(kind)
        story.ask(operation)
        desk.make_calls_fail("look_up", CallFailure.SILENT)
        assert story.look_up(operation).verdict == Verdict.UNKNOWN


class TestAnAuthorization:
    @pytest.mark.parametrize("failure", DONE)
    def test_with_a_lost_challenge_has_its_address_when_it_is_looked_up(
        self, desk: Desk, acme: Merchant, failure: CallFailure
    ) -> None:
        story = Story(desk, acme, Card.ASKS)
        operation = story.begin(Kind.AUTHORIZE)
        desk.make_calls_fail("authorize", failure)
        assert story.ask(operation).verdict == Verdict.UNKNOWN
        found = story.find(operation)
        assert found.verdict == Verdict.NEEDS_ACTION and found.action_url.startswith("http")

    def test_with_a_lost_decline_is_found_declined(self, desk: Desk, acme: Merchant) -> None:
        story = Story(desk, acme, Card.NO_MONEY)
        operation = story.begin(Kind.AUTHORIZE)
        desk.make_calls_fail("authorize", CallFailure.DONE_SILENT)
        assert story.ask(operation).verdict == Verdict.UNKNOWN
        found = story.end(operation, story.find(operation))
        assert (found.verdict, found.reason) == (Verdict.DECLINED, "insufficient_funds")
