from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from checkout import authorizations, captures, given_up_cards, refunds, tasks
from checkout.models import Checkout
from checkout.outside import notifications
from checkout.proof import proving
from payments import provider, reconciliation
from payments import tasks as payment_tasks
from payments.models import Discrepancy, Dispute, Inquiry, Merchant, Operation, Payment
from payments.provider import CardUse, ProviderUnreachable, Record, Verdict
from payments.providers.sandbox import bank, client, journal, settling
from payments.providers.sandbox.models import Call
from payments.providers.sandbox.models import Dispute as BankDispute
from tests import factories, mates, refusals
from tests.factories import CAUSE, CustomerFactory

pytestmark = pytest.mark.django_db
CHALLENGED = "4000002500003155"
RETURNS = "4000000000007726"


def compare() -> reconciliation.Comparison:
    return reconciliation.compare(timezone.now() - timedelta(hours=1))


def kinds() -> list[tuple[str, UUID]]:
    return [(found.kind, found.subject) for found in compare().differences]


def run(*arguments: str) -> tuple[int, str]:
    """Return the command's exit code and output."""
    said = StringIO()
    try:
        call_command("reconcile", *arguments, stdout=said)
    except SystemExit as ended:
        return int(str(ended.code)), said.getvalue()
    return 0, said.getvalue()


@pytest.fixture
def capture_of(captured: Checkout) -> Operation:
    """The capture of a checkout that is captured, an hour's fraction ago."""
    Operation.objects.filter(ended_at__isnull=False).update(ended_at=timezone.now() - timedelta(minutes=1))
    return Operation.objects.get(kind="capture")


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the provider's list say something else of one operation."""
    listed = journal.records

    def says(operation: Operation, **changes: Any) -> None:
        def records(**arguments: Any) -> list[Record]:
            return [
                replace(row, **changes) if row.key == operation.pk else row for row in listed(**arguments)
            ]

        monkeypatch.setitem(client.OTHERS, "records", records)

    return says


class TestAgreeingBooks:
    @pytest.mark.parametrize(
        "status",
        ["created", "authorized", "captured", "refunding", "refunded", "voided", "lapsed", "expired"],
    )
    def test_do_not_differ(self, at: Callable[[str], Checkout], status: str) -> None:
        at(status)
        assert compare().differences == []
        tasks.finish_operations()
        compared = compare()
        assert compared.differences == [] and compared.ours == compared.theirs == Call.objects.count()

    @pytest.mark.parametrize("card", ["4000000000000002", "4000000000009995", CHALLENGED])
    def test_do_not_differ_after_a_card_that_is_not_held(
        self, unpaid: Checkout, pay: Callable[..., Checkout], card: str
    ) -> None:
        pay(unpaid, card)
        assert compare() == reconciliation.Comparison(1, 1, [])

    def test_do_not_differ_by_a_token_that_the_bank_refused_to_know(self, unpaid: Checkout) -> None:
        lead = CustomerFactory.create()
        paid = authorizations.authorize(unpaid.pk, card=CardUse("tok_used"), lead=lead, cause=CAUSE)
        assert paid.verdict == "declined"
        assert compare() == reconciliation.Comparison(0, 0, [])

    def test_do_not_differ_by_what_never_arrived_or_is_still_to_be_sent(self, capture_of: Operation) -> None:
        for kind, state in (("refund", "planned"), ("void", "in_flight")):
            Operation.objects.create(
                payment=capture_of.payment,
                kind=kind,
                state=state,
                amount=9000,
                actor="pump",
                created_at=timezone.now(),
            )
        Operation.objects.create(
            payment=capture_of.payment,
            created_at=timezone.now(),
            kind="capture",
            state="failed",
            reason="never_arrived",
            ended_at=timezone.now() - timedelta(minutes=1),
            amount=9000,
            actor="pump",
        )
        assert compare().differences == []

    def test_are_compared_in_a_few_statements(self, acme: Merchant, pay: Callable[..., Checkout]) -> None:
        asked = []
        for _ in range(2):
            with CaptureQueriesContext(connection) as queries:
                assert compare().differences == []
            asked.append(len(queries))
            for _ in range(3):
                pay(factories.checkout(acme))
            Operation.objects.update(ended_at=timezone.now() - timedelta(minutes=1))
        with CaptureQueriesContext(connection) as queries:
            assert compare() == reconciliation.Comparison(6, 6, [])
        assert len(queries) <= asked[1] + 1 <= 9

    def test_are_compared_over_many_chunks(
        self, acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reconciliation, "CHUNK", 2)
        for _ in range(5):
            pay(factories.checkout(acme))
        lost = list(Call.objects.order_by("created_at").values_list("pk", flat=True))[3]
        Operation.objects.update(ended_at=timezone.now() - timedelta(minutes=1))
        Call.objects.filter(pk=lost).delete()
        assert kinds() == [("missing_there", lost)]


class TestADifference:
    @pytest.mark.rule("money.reconciled")
    @pytest.mark.parametrize(
        ("kind", "changes"),
        [
            ("kind_differs", {"kind": "void"}),
            ("payment_differs", {"payment": uuid7()}),
            ("account_differs", {"account": uuid7()}),
            ("amount_differs", {"amount": 1}),
            ("amount_differs", {"currency": "EUR"}),
            ("status_differs", {"verdict": Verdict.FAILED}),
            ("status_differs", {"verdict": Verdict.PENDING}),
        ],
    )
    def test_is_left_once_and_changes_nothing(
        self, capture_of: Operation, says: Callable[..., None], kind: str, changes: dict[str, Any]
    ) -> None:
        says(capture_of, **changes)
        with refusals.nothing_moves():
            assert kinds() == kinds() == [(kind, capture_of.pk)]
        left = Discrepancy.objects.get()
        assert (left.kind, left.subject, left.operation) == (kind, capture_of.pk, capture_of)
        assert left.merchant == capture_of.payment.merchant and left.facts["ours"] != left.facts["theirs"]

    def test_is_what_they_have_and_we_do_not(self, capture_of: Operation) -> None:
        call = Call.objects.get(pk=capture_of.pk)
        call.pk, call.reference = uuid7(), None
        call.save(force_insert=True)
        assert kinds() == kinds() == [("outside_capture", call.pk)]
        left = Discrepancy.objects.get()
        assert left.merchant == capture_of.payment.merchant
        payment = capture_of.payment
        assert left.facts == {
            "ours": "",
            "theirs": "capture succeeded 9000 GBP",
            "payment": str(payment.pk),
            "checkout": str(payment.checkout_uuid),
            "amount": 9000,
            "currency": "GBP",
        }

    @pytest.mark.parametrize("kind", ["refund", "void"])
    def test_is_told_once_of_what_was_done_in_the_dashboard_with_what_it_means(
        self, captured: Checkout, pay: Callable[..., Checkout], kind: str
    ) -> None:
        """By its notice and by the comparison at night: one discrepancy, of the merchant's."""
        payment = captured.payment_id
        if kind == "void":
            payment = pay(factories.checkout(captured.merchant)).payment_id
        client.ask("act_in_dashboard", kind=kind, payment=payment, amount=9000)
        call = Call.objects.get(reference=None)
        with refusals.nothing_moves():
            notifications.hear(journal.record(call))
            compare()
        left = Discrepancy.objects.get()
        assert (left.kind, left.subject, left.merchant) == (f"outside_{kind}", call.pk, captured.merchant)
        assert left.kind in payment_tasks.WHAT_TO_DO

    def test_of_an_account_that_we_do_not_know_has_no_merchant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stranger = Record(uuid7(), "capture", Verdict.SUCCEEDED, uuid7(), uuid7(), 5, "GBP")
        monkeypatch.setattr(type(provider.current()), "records", lambda *_: iter([stranger]))
        assert kinds() == [("missing_here", stranger.key)]
        assert Discrepancy.objects.get().merchant is None

    @pytest.mark.parametrize("state", ["succeeded", "declined", "failed"])
    def test_is_what_we_have_an_answer_for_and_they_do_not_have(
        self, capture_of: Operation, state: str
    ) -> None:
        Operation.objects.filter(pk=capture_of.pk).update(state=state)
        Call.objects.filter(pk=capture_of.pk).delete()
        assert kinds() == kinds() == [("missing_there", capture_of.pk)]
        left = Discrepancy.objects.get()
        assert left.operation == capture_of
        assert left.facts == {"ours": f"capture {state} 9000 GBP", "theirs": ""}

    def test_is_a_refund_that_is_pending_with_us_alone(self, at: Callable[[str], Checkout]) -> None:
        at("refunding")
        tasks.finish_operations()
        refund = Operation.objects.get(kind="refund", state="pending")
        Operation.objects.exclude(pk=refund.pk).update(ended_at=timezone.now() - timedelta(minutes=1))
        Call.objects.filter(pk=refund.pk).delete()
        assert kinds() == [("missing_there", refund.pk)]

    def test_is_not_what_ended_after_they_were_asked(
        self, captured: Checkout, says: Callable[..., None]
    ) -> None:
        capture = Operation.objects.get(kind="capture")
        Operation.objects.update(ended_at=timezone.now() + timedelta(minutes=1))
        says(capture, verdict=Verdict.PENDING)
        assert kinds() == []
        Call.objects.filter(pk=capture.pk).delete()
        assert kinds() == []


class TestInDoubt:
    @pytest.mark.parametrize("state", ["in_flight", "unknown", "pending"])
    def test_may_differ_for_a_day(self, capture_of: Operation, state: str) -> None:
        rows = Operation.objects.filter(pk=capture_of.pk)
        rows.update(state=state, ended_at=None)
        assert kinds() == []
        rows.update(created_at=timezone.now() - timedelta(hours=25))
        assert kinds() == [("status_differs", capture_of.pk)]
        left = Discrepancy.objects.get()
        assert left.facts == {"ours": state, "theirs": "succeeded"}


class TestAChallengeThatWasGivenUp:
    @pytest.fixture
    def given_up(self, unpaid: Checkout, pay: Callable[..., Checkout]) -> Operation:
        """An authorization whose payer went on with another card, and whose void is planned."""
        pay(unpaid, CHALLENGED)
        given_up_cards.use_another_card(unpaid.pk)
        operation = Operation.objects.get(kind="authorize")
        assert (operation.state, operation.reason) == ("failed", "another_card")
        Operation.objects.filter(pk=operation.pk).update(ended_at=timezone.now() - timedelta(minutes=1))
        return operation

    @pytest.mark.parametrize("is_confirmed", [None, False, True], ids=["open", "refused", "confirmed"])
    def test_is_no_difference_once_it_is_released(
        self, given_up: Operation, is_confirmed: bool | None
    ) -> None:
        if is_confirmed is not None:
            bank.answer_challenge(key=given_up.pk, is_confirmed=is_confirmed)
        assert kinds() == []
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "succeeded"
        assert kinds() == []

    @pytest.mark.parametrize("state", ["failed", "planned"])
    def test_is_one_where_the_void_failed_or_hangs(self, given_up: Operation, state: str) -> None:
        then = timezone.now() - timedelta(hours=25)
        ended_at = then if state == "failed" else None
        Operation.objects.filter(kind="void").update(state=state, ended_at=ended_at, created_at=then)
        assert kinds() == [("status_differs", given_up.pk)]


class TestTheCommand:
    def test_prints_how_much_agrees(self, capture_of: Operation) -> None:
        assert run() == (0, "2 operations of ours, 2 of the provider's, 0 differences\n")

    def test_prints_each_difference_and_exits_1(
        self, capture_of: Operation, says: Callable[..., None]
    ) -> None:
        says(capture_of, verdict=Verdict.FAILED)
        expected = (
            f"{capture_of.pk}  status_differs  ours: succeeded  theirs: failed\n"
            "2 operations of ours, 2 of the provider's, 1 differences\n"
        )
        assert run() == run("--since-hours", "1") == (1, expected)

    def test_looks_back_as_far_as_it_is_told(self, capture_of: Operation) -> None:
        assert run("--since-hours", "0")[1].startswith("0 operations of ours")

    def test_compares_nothing_with_a_provider_that_is_silent(
        self, capture_of: Operation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def silence(**_: object) -> list[Record]:
            raise ProviderUnreachable

        monkeypatch.setitem(client.OTHERS, "records", silence)
        with pytest.raises(CommandError, match="does not answer"):
            call_command("reconcile")
        assert not Discrepancy.objects.exists()


def test_what_was_found_before_the_provider_fell_silent_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stranger = Record(uuid7(), "capture", Verdict.SUCCEEDED, uuid7(), uuid7(), 5, "GBP")

    def records(*_: object) -> Iterator[Record]:
        yield stranger
        raise ProviderUnreachable

    monkeypatch.setattr(reconciliation, "CHUNK", 1)
    monkeypatch.setattr(type(provider.current()), "records", records)
    with pytest.raises(ProviderUnreachable):
        compare()
    left = Discrepancy.objects.get()
    assert (left.kind, left.subject) == ("missing_here", stranger.key)


@pytest.mark.rule("money.late")
class TestWhatHappensLate:
    """Days after the order, and nobody has told: the next night's run learns of it all the same."""

    @pytest.fixture
    def learns(self) -> Callable[..., None]:
        """Let what has happened lie five days back, then the bank do something, and the night come."""

        def learned(happens: Callable[[], object]) -> None:
            ago = timezone.now() - timedelta(days=5)
            Call.objects.update(created_at=ago, changed_at=ago)
            BankDispute.objects.update(opens_at=ago)
            Operation.objects.update(created_at=ago, ended_at=ago)
            Inquiry.objects.all().delete()
            happens()
            payment_tasks.reconcile()
            tasks.answer_inquiries()
            assert proving.breaches() == []

        return learned

    def test_a_refund_that_comes_back(
        self, unpaid: Checkout, pay: Callable[..., Checkout], learns: Callable[..., None]
    ) -> None:
        captures.capture(unpaid.merchant, pay(unpaid, RETURNS).pk, cause=CAUSE)
        refunds.accept(unpaid.merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        mates.pump(unpaid.pk, rounds=2)
        settling.advance(payments=[Payment.objects.get().pk], seconds=3)
        learns(settling.settle_due)
        assert [row.kind for row in Discrepancy.objects.all()] == ["refund_returned"]

    def test_a_dispute_and_its_decision(self, captured: Checkout, learns: Callable[..., None]) -> None:
        payment = captured.payment_id
        learns(lambda: client.ask("dispute", payment=payment))
        assert Dispute.objects.get().status == "open"
        learns(lambda: client.ask("decide", payment=payment, is_won=False))
        assert Dispute.objects.get().status == "lost"

    def test_what_is_done_in_the_dashboard(self, captured: Checkout, learns: Callable[..., None]) -> None:
        payment = captured.payment_id
        learns(lambda: client.ask("act_in_dashboard", kind="refund", payment=payment, amount=1000))
        assert Discrepancy.objects.get().kind == "outside_refund"
