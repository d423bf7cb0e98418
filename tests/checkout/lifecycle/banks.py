"""The providers of the random money tests: the sandbox bank and a simulated Stripe.

At each provider, a test can act as a payer, as the merchant's staff or as a bank.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

import stripe

from payments import safe_answers
from payments.provider import Notification
from payments.providers.sandbox import bank, client, fault_injection, settling
from payments.providers.sandbox.models import BankNotification, Call, Charge, Dispute, Fault
from payments.providers.stripe import metadata
from tests import mates
from tests.checkout.lifecycle import ways_out
from tests.payments.providers.conformance.desk import CallFailure
from tests.payments.providers.conformance.stripe import FAULTS, INTENT, PATHS, StripeDesk, times_of

T = TypeVar("T")
# The path of a sync's first request, which reads one intent. A fault on this path does not affect the test's
# own reads, because a test reads only lists.
ONE_INTENT = f"{INTENT}/[^/]+"


def pick(found: Sequence[T], which: int) -> T | None:
    """Return the element at `which` modulo the length, or None if the sequence is empty."""
    return found[which % len(found)] if found else None


class Bank(Protocol):
    """A provider: the actions of payers, staff and banks there, and the faults that it can have.

    The argument `which` selects the object to act on. If there is no object, a method has no effect.
    """

    faults: Sequence[tuple[Any, ...]]

    def begin(self) -> None:
        """Discard the data of the previous test run."""

    def token(self, card: str, subject: UUID) -> str:
        """Return the token that the card page creates for a card.

        `card` is "good", "other", "closed" (refunds to it fail) or "returns" (refunds to it are returned later).
        """

    def refund(self, which: int, part: int, *, is_pending: bool) -> None:
        """Refund a captured card as staff do in the dashboard. The amount is the unrefunded rest, divided by `part`."""

    def end_refund(self, which: int, *, fails: bool) -> None:
        """Settle a pending refund. With `fails`, make a pending refund fail, or let a bank return a settled one."""

    def dispute(self, which: int, part: int, *, is_inquiry: bool) -> None:
        """Dispute the payment of a captured card. The amount is the payment's amount divided by `part`."""

    def decide(self, which: int, *, is_won: bool) -> None:
        """Decide an open dispute. If the dispute is closed, decide it again, as an appeal does."""

    def decide_all(self) -> None:
        """Decide every open dispute."""

    def settle_all(self) -> None:
        """Settle all pending refunds."""

    def tell(self) -> Sequence[Notification]:
        """Return the notifications that have not been sent yet."""

    def make_calls_fail(self, fault: tuple[Any, ...], times: int) -> None:
        """Make the next `times` calls fail with this fault."""

    def end_faults(self) -> None:
        """Make all further calls succeed."""

    def pass_time(self, seconds: int) -> None:
        """Let time pass for the provider's records that are not in our database."""

    def bears(self) -> Mapping[UUID, int]:
        """Map each captured payment to the amount that is still charged to its card, as the provider reports it."""


class SandboxBank:
    """The sandbox bank, called in this process."""

    CARDS: Mapping[str, str] = {
        "good": "4242424242424242",
        "other": mates.FINNS,
        "closed": mates.ACCOUNT_CLOSED,
        "returns": "4000000000007726",
    }
    REFUND = (
        *("down", "error", "done_then_reset", "done_then_error", "replayed_500"),
        *("refund_card_closed", "not_accepted"),
    )
    faults: Sequence[tuple[Any, ...]] = (
        *(("refund", mode) for mode in REFUND),
        *(("capture", mode) for mode in ("down", "done_then_reset", "error", "pending")),
        *(("look_up", mode) for mode in ("down", "not_vouched")),
        *(("movements", mode) for mode in ("down", "stale")),
    )

    def begin(self) -> None:
        """Do not discard data here. The test rolls back to a savepoint, which also discards the bank's rows."""

    def token(self, card: str, subject: UUID) -> str:
        return bank.tokenise(subject=subject, number=self.CARDS[card])

    def refund(self, which: int, part: int, *, is_pending: bool) -> None:
        charge = pick(_captured(), which)
        if charge is not None:
            amount = max(1, (charge.amount - charge.refunded_amount) // part)
            facts = {"kind": "refund", "payment": charge.payment, "amount": amount}
            client.call_bank("act_in_dashboard", is_pending=is_pending, **facts)

    def end_refund(self, which: int, *, fails: bool) -> None:
        lines = Call.objects.filter(kind="refund", verdict__in=["pending", "succeeded"])
        line = pick(list(lines.select_related("charge").order_by("created_at", "pk")), which)
        if line is not None:
            _end(line, settling.CARD_CLOSED if fails else "")

    def dispute(self, which: int, part: int, *, is_inquiry: bool) -> None:
        charge = pick(_captured(), which)
        if charge is not None:
            facts = {"amount": charge.amount // part, "is_inquiry": is_inquiry}
            client.call_bank("dispute", payment=charge.payment, **facts)

    def decide(self, which: int, *, is_won: bool) -> None:
        found = pick(list(Dispute.objects.select_related("charge").order_by("pk")), which)
        if found is not None:
            client.call_bank("decide", payment=found.charge.payment, is_won=is_won, reference=str(found.pk))

    def decide_all(self) -> None:
        for found in Dispute.objects.filter(status="open").select_related("charge").order_by("pk"):
            is_won = bool(found.pk.int % 2)
            client.call_bank("decide", payment=found.charge.payment, is_won=is_won, reference=str(found.pk))

    def settle_all(self) -> None:
        for line in Call.objects.filter(kind="refund", verdict="pending", settles_at=None):
            _end(line)

    def tell(self) -> Sequence[Notification]:
        told: Sequence[Notification] = client.call_bank("tell", payments=ways_out.payments())
        BankNotification.objects.update(due_at=None)
        return told

    def make_calls_fail(self, fault: tuple[Any, ...], times: int) -> None:
        fault_injection.set_fault(verb=fault[0], mode=fault[1], times=times)

    def end_faults(self) -> None:
        Fault.objects.all().delete()

    def pass_time(self, seconds: int) -> None:
        """Do not change records here. `ageing.let_pass` makes the bank's rows older too."""

    def bears(self) -> Mapping[UUID, int]:
        found = {}
        for charge in Charge.objects.all():
            disputed = sum(row.amount for row in Dispute.objects.filter(charge=charge) if row.has_taken)
            taken = charge.amount if charge.state == Charge.State.CAPTURED else 0
            found[charge.payment] = taken - charge.refunded_amount - disputed
        return found


def _captured() -> list[Charge]:
    return list(Charge.objects.filter(state="captured").order_by("pk"))


def _end(line: Call, fails_with: str = "") -> None:
    settling.end_refund(payment=line.charge.payment, reference=str(line.key), fails_with=fails_with)


class StripeBank:
    """A simulation of Stripe in a separate process, which is called over HTTP."""

    CARDS: Mapping[str, str] = {
        "good": "pm_card_visa",
        "other": "pm_card_mastercard",
        "closed": "pm_card_refundFail",
        "returns": "pm_card_refundFail",
    }
    faults: Sequence[tuple[Any, ...]] = (
        *(("refund", failure) for failure in CallFailure),
        *(("capture", failure) for failure in CallFailure if failure != CallFailure.REPLAYED_ERROR),
        *(("movements", failure) for failure in (CallFailure.SILENT, CallFailure.ERROR)),
    )

    def __init__(self, anew: Callable[[], StripeDesk]) -> None:
        self._anew = anew

    def begin(self) -> None:
        self.desk = self._anew()

    def token(self, card: str, subject: UUID) -> str:
        return str(self.desk.peer.switch("confirmation_token", card=self.CARDS[card])["id"])

    def refund(self, which: int, part: int, *, is_pending: bool) -> None:
        charge = pick(self._charges(), which)
        left = charge.amount_captured - charge.amount_refunded if charge else 0
        if charge is None or left == 0 or charge.disputed:
            return
        if is_pending:
            self.desk.peer.switch("pending_refund")
        asked = {"charge": charge.id, "amount": max(1, left // part)}
        faults = self.desk.peer.switch("faults")
        self.end_faults()  # so that no fault affects the call from the dashboard
        self.desk.dashboard.v1.refunds.create(asked)  # type: ignore[arg-type]
        for fault in faults:
            self.desk.peer.switch("fault", **fault)

    def end_refund(self, which: int, *, fails: bool) -> None:
        rows = [row for row in self._refunds() if row.status in ("pending", "succeeded")]
        found = pick(rows, which)
        if found is not None and (fails or found.status == "pending"):
            status = "failed" if fails else "succeeded"
            self.desk.peer.switch("end_refund", refund=found.id, status=status)

    def dispute(self, which: int, part: int, *, is_inquiry: bool) -> None:
        charge = pick(self._charges(), which)
        if charge is not None and not charge.disputed:
            reason = "warning" if is_inquiry else "fraudulent"
            asked = {"charge": charge.id, "amount": charge.amount // part, "reason": reason}
            self.desk.peer.switch("dispute", **asked)

    def decide(self, which: int, *, is_won: bool) -> None:
        found = pick(self._disputes(), which)
        if found is not None:
            self._decide(found, is_won=is_won)

    def decide_all(self) -> None:
        for number, found in enumerate(self._disputes()):
            if found.status not in ("won", "lost"):
                self._decide(found, is_won=bool(number % 2))
        # An inquiry can become a dispute when it is decided. Such a dispute is decided here.
        for found in self._disputes():
            if found.status == "needs_response":
                self._decide(found, is_won=False)

    def settle_all(self) -> None:
        self.desk.peer.switch("settle_refunds")

    def tell(self) -> Sequence[Notification]:
        told: list[Notification] = []
        for message in self.desk.messages():
            told += safe_answers.safe_notifications(self.desk.provider.parse_notifications(message))
        return told

    def make_calls_fail(self, fault: tuple[Any, ...], times: int) -> None:
        verb, failure = fault
        method, path = ("GET", ONE_INTENT) if verb == "movements" else PATHS[verb]
        times *= times_of(method, failure)
        self.desk.peer.switch("fault", method=method, path=path, times=times, **FAULTS[failure])

    def end_faults(self) -> None:
        self.desk.peer.switch("go_right")

    def pass_time(self, seconds: int) -> None:
        self.desk.peer.switch("age_keys", seconds=seconds)

    def bears(self) -> Mapping[UUID, int]:
        paid = self._paid()
        found = {payment: charge.amount_captured for payment, charge in paid.items()}
        of_charge = {charge.id: payment for payment, charge in paid.items()}
        for refund in self._refunds():
            if refund.status == "succeeded":
                found[of_charge[str(refund.charge)]] -= refund.amount
        for dispute in self._disputes():
            moved = sum(line.amount for line in dispute.balance_transactions)
            found[of_charge[str(dispute.charge)]] += moved
        return found

    def _decide(self, dispute: stripe.Dispute, *, is_won: bool) -> None:
        """Decide a dispute.

        If it is an inquiry, close it, or turn it into a dispute that withdraws the money.
        """
        if dispute.status == "warning_closed":
            return
        is_inquiry = dispute.status.startswith("warning")
        status = (
            ("warning_closed" if is_won else "needs_response") if is_inquiry else "won" if is_won else "lost"
        )
        if status != dispute.status:
            self.desk.peer.switch("decide", dispute=dispute.id, status=status)
            if status == "needs_response":
                self.desk.peer.switch("move_dispute", dispute=dispute.id, is_back=False)

    def _paid(self) -> dict[UUID, stripe.Charge]:
        """Return the captured charge of each payment, sorted by the payment's id."""
        asked: Any = {"limit": 100, "expand": ["data.latest_charge"]}
        rows = self.desk.dashboard.v1.payment_intents.list(asked).auto_paging_iter()
        paid = [(metadata.read_id(row, metadata.PAYMENT), row.latest_charge) for row in rows]
        found = [
            (key, charge)
            for key, charge in paid
            if key and isinstance(charge, stripe.Charge) and charge.captured
        ]
        return dict(sorted(found))

    def _charges(self) -> list[stripe.Charge]:
        return list(self._paid().values())

    def _refunds(self) -> list[stripe.Refund]:
        rows = self.desk.dashboard.v1.refunds.list({"limit": 100}).auto_paging_iter()
        return sorted(rows, key=lambda row: (row.created, row.amount, str(row.charge)))

    def _disputes(self) -> list[stripe.Dispute]:
        rows = self.desk.dashboard.v1.disputes.list({"limit": 100}).auto_paging_iter()
        return sorted(rows, key=lambda row: (row.created, row.amount, str(row.charge)))
