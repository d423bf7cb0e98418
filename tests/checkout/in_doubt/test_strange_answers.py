"""Malformed responses from a provider.

If only unimportant fields are malformed, the money is recorded. Otherwise the outcome stays unknown, and the pump
looks up the operation again.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from checkout import cancellations, captures, refunds, states
from checkout.models import Checkout
from checkout.syncing import notifications, sync
from config.lib import clock
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import card_page
from payments import provider
from payments.models import Discrepancy, Movement, Operation, Payment
from payments.provider import Books, Card, DisputeRecord, Notification, Outcome, RefundRecord, Verdict
from payments.providers.sandbox import bank, fault_injection
from payments.providers.sandbox.models import Call
from tests.factories import CAUSE
from tests.outages import pump
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db
LONG, ODD, WRONG = "x" * 5000, "a\x00b\ud800\x1b", {"a": [1]}
STRANGE: list[Any] = [LONG, ODD, WRONG, None, 7, True, b"\xff"]
# These values are tested with every verdict.
SOME = [
    ODD,
    *(pytest.param(value, marks=pytest.mark.long) for value in (LONG, WRONG)),
]
State = Operation.State
KINDS = ["authorize", "capture", "void", "refund", "look_up"]
Change = Callable[[Outcome], Any]
ChangeResponses = Callable[..., None]


def named(value: Any) -> str:
    """Return a short name of the value for the test's id."""
    return ascii(value)[:20]


class ChangedProvider:
    """A proxy for the provider that changes the responses to the next calls of one kind."""

    def __init__(self, kind: str, change: Change, times: int) -> None:
        self._peer, self._kind, self._change, self._left = provider.current_provider(), kind, change, times

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._peer, name)
        if name != self._kind or self._left == 0:
            return act
        self._left -= 1
        return lambda *arguments: self._change(act(*arguments))


@pytest.fixture
def change_responses(monkeypatch: pytest.MonkeyPatch) -> ChangeResponses:
    """Return a function that changes the provider's responses to the next calls of a kind."""

    def changed(kind: str, change: Change, times: int = 1) -> None:
        changed_provider = ChangedProvider(kind, change, times)
        monkeypatch.setattr(provider, "current_provider", lambda: changed_provider)

    return changed


def decorated(value: Any) -> Change:
    """Return a change that writes the value into every field that does not affect money."""

    def change(outcome: Outcome) -> Outcome:
        words = replace(
            outcome, reference=value, reason=value, is_vouched=value, card=Card(value, value, value)
        )
        return words if outcome.verdict == Verdict.NEEDS_ACTION else replace(words, action_url=value)

    return change


@pytest.fixture
def ended(unpaid: Checkout, pay: Callable[..., Checkout]) -> Callable[[str], Operation]:
    """Run an operation of this kind on Acme's checkout until it ends; return it.

    For the kind `look_up`, run a capture whose response is lost.
    """

    def run_operation(kind: str) -> Operation:
        checkout = pay(unpaid)
        if kind == "look_up":
            fault_injection.set_fault(verb="capture", mode="done_then_reset", times=1)
        if kind in ("capture", "refund", "look_up"):
            with suppress(captures.OutcomeUnknown):
                captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)
        if kind == "refund":
            refunds.accept(checkout.merchant, checkout.pk, ref="r-1", cause=CAUSE)
        if kind == "void":
            cancellations.cancel(checkout.merchant, checkout.pk, cause=CAUSE)
        for _ in range(3):
            pump()
        of_kind = Operation.objects.filter(kind="capture" if kind == "look_up" else kind)
        return of_kind.select_related("payment").earliest("created_at")

    return run_operation


@pytest.mark.rule("doubt.bounded")
@pytest.mark.usefixtures("proven")
@pytest.mark.parametrize("kind", KINDS)
class TestSuccess:
    @pytest.mark.parametrize("value", STRANGE, ids=named)
    def test_is_recorded_with_any_values_in_the_other_fields(
        self, change_responses: ChangeResponses, ended: Callable[[str], Operation], kind: str, value: Any
    ) -> None:
        change_responses(kind, decorated(value), times=9)
        operation = ended(kind)
        assert (operation.state, operation.payment.amount) == ("succeeded", 9000)
        assert not Discrepancy.objects.exists()

    @pytest.mark.parametrize("field", ["verdict", "amount"])
    @pytest.mark.parametrize("value", [LONG, ODD, WRONG, "9000", True], ids=named)
    def test_that_cannot_be_read_leaves_the_operation_in_doubt_until_a_clear_answer(
        self,
        change_responses: ChangeResponses,
        ended: Callable[[str], Operation],
        kind: str,
        field: str,
        value: Any,
    ) -> None:
        change_responses(kind, lambda outcome: replace(outcome, **{field: value}))
        assert ended(kind).state == "succeeded"
        assert Discrepancy.objects.get().kind == "unreadable_answer"

    @pytest.mark.parametrize("value", STRANGE, ids=named)
    def test_of_the_wrong_type_leaves_the_operation_in_doubt_until_a_clear_answer(
        self, change_responses: ChangeResponses, ended: Callable[[str], Operation], kind: str, value: Any
    ) -> None:
        change_responses(kind, lambda _: value)
        assert ended(kind).state == "succeeded"
        assert Discrepancy.objects.get().kind == "unreadable_answer"


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("kind", KINDS)
class TestEveryVerdict:
    @pytest.mark.parametrize("value", SOME, ids=named)
    def test_is_recorded_with_any_values_in_the_other_fields(
        self,
        change_responses: ChangeResponses,
        ended: Callable[[str], Operation],
        kind: str,
        verdict: Verdict,
        value: Any,
    ) -> None:
        change_responses(kind, lambda outcome: decorated(value)(replace(outcome, verdict=verdict)))
        with suppress(captures.OutcomeUnknown, captures.ProviderRefused, states.StateConflict):
            ended(kind)
        reached = set(Operation.objects.values_list("state", flat=True))
        assert reached <= {*Operation.ENDED, State.NEEDS_ACTION, State.PENDING, State.UNKNOWN}


class TestADecline:
    @pytest.mark.parametrize("reason", [LONG, ODD, WRONG, 7, "4242424242424242"], ids=named)
    def test_for_an_unknown_reason_is_shown_as_other(
        self, change_responses: ChangeResponses, unpaid: Checkout, pay: Callable[..., Checkout], reason: Any
    ) -> None:
        change_responses("authorize", lambda outcome: replace(outcome, reason=reason))
        pay(unpaid, "4000000000000002")
        declined = Operation.objects.select_related("payment").get()
        assert (declined.state, declined.reason, declined.payment.decline_reason) == (
            "declined",
            "other",
            "other",
        )
        notice = card_page._decline_notice(PaymentTarget(unpaid))
        assert notice is not None and notice["title"] == "Your bank declined this card."

    def test_with_one_of_our_internal_reasons_is_recorded_as_other(
        self, change_responses: ChangeResponses, unpaid: Checkout, pay: Callable[..., Checkout]
    ) -> None:
        change_responses("authorize", lambda outcome: replace(outcome, reason="another_card"))
        pay(unpaid, "4000000000000002")
        assert Operation.objects.get().reason == "other"


class TestAQuestionToThePayer:
    @pytest.mark.parametrize(
        "address", ["", "javascript:alert(1)", "https://bank.example/" + "a" * 2048, None, 7]
    )
    def test_with_an_invalid_address_is_in_doubt_and_looked_up_again(
        self, change_responses: ChangeResponses, unpaid: Checkout, pay: Callable[..., Checkout], address: Any
    ) -> None:
        change_responses("authorize", lambda outcome: replace(outcome, action_url=address))
        pay(unpaid, "4000002500003155")
        operation = Operation.objects.get()
        assert (operation.state, operation.action_url) == ("unknown", "")
        assert Discrepancy.objects.get().kind == "unreadable_answer"
        pump()
        operation.refresh_from_db()
        assert operation.state == "needs_action" and "/bank/challenge/" in operation.action_url


class TestANotification:
    PATH = "/provider/notifications"

    def post_notifications(self, monkeypatch: pytest.MonkeyPatch, notification: Any) -> int:
        monkeypatch.setattr(type(provider.current_provider()), "parse_notifications", lambda *_: notification)
        status: int = Client().post(self.PATH, b"{}", content_type="application/json").status_code
        return status

    @pytest.mark.parametrize("field", ["id", "payment", "kind", "verdict", "operation"])
    @pytest.mark.parametrize("value", STRANGE, ids=named)
    def test_with_an_invalid_field_is_accepted_and_changes_no_operation(
        self, monkeypatch: pytest.MonkeyPatch, held: Checkout, field: str, value: Any
    ) -> None:
        operation = Operation.objects.get()
        notification = Notification("n-1", operation.payment_id, "authorize", Verdict.SUCCEEDED, operation.pk)
        assert self.post_notifications(monkeypatch, [replace(notification, **{field: value})]) == 204
        assert Operation.objects.get().state == "succeeded"
        assert Discrepancy.objects.exists() == (field == "payment")

    @pytest.mark.parametrize("value", STRANGE, ids=named)
    def test_of_the_wrong_type_is_accepted(self, monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
        assert self.post_notifications(monkeypatch, [value, Notification(value, value)]) == 204
        assert Discrepancy.objects.get().kind == "missing_here"

    def test_about_no_payment_is_accepted_and_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.post_notifications(monkeypatch, []) == 204
        assert not Discrepancy.objects.exists()

    def test_message_contains_at_most_a_thousand_notifications(
        self, monkeypatch: pytest.MonkeyPatch, held: Checkout
    ) -> None:
        strangers = [Notification(f"n-{n}", UUID(int=n)) for n in range(1, 1201)]
        heard: list[UUID] = []
        monkeypatch.setattr(
            notifications,
            "handle_notification",
            lambda notification: heard.append(notification.payment),
        )
        assert self.post_notifications(monkeypatch, iter(strangers)) == 204
        assert heard == [UUID(int=n) for n in range(1, 1001)]

    def test_that_breaks_the_adapter_is_a_400_and_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(provider.current_provider()), "parse_notifications", lambda *_: [].pop())
        assert Client().post(self.PATH, b"{}", content_type="application/json").status_code == 400
        assert Discrepancy.objects.get().kind == "unreadable_notification"


@pytest.mark.rule("doubt.bounded")
class TestBooks:
    @pytest.mark.parametrize("value", STRANGE, ids=named)
    def test_of_the_wrong_type_change_nothing(
        self, monkeypatch: pytest.MonkeyPatch, held: Checkout, value: Any
    ) -> None:
        monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: value)
        with nothing_moves():
            sync.sync(held.payment_id or held.pk)

    @pytest.mark.parametrize("value", STRANGE, ids=named)
    def test_with_invalid_entries_record_the_clear_entries(
        self, monkeypatch: pytest.MonkeyPatch, captured: Checkout, value: Any
    ) -> None:
        bank.act_in_dashboard(kind="refund", payment=captured.payment_id or captured.pk, amount=1000)
        Call.objects.filter(kind="refund").update(settles_at=clock.now())
        books = provider.current_provider().movements(captured.payment or Payment())
        refund = RefundRecord(*[value] * 10)
        dispute = DisputeRecord(*[value] * 9)
        capture = replace(books.capture, at=value) if books.capture else None
        odd_books = Books(value, capture, [value, refund, *books.refunds], [value, dispute])
        monkeypatch.setattr(type(provider.current_provider()), "movements", lambda *_: odd_books)
        sync.sync(captured.payment_id or captured.pk)
        moved = Movement.objects.order_by("pk").values_list("kind", "amount")
        assert list(moved) == [("captured", 9000), ("refunded", -1000)]
