"""A provider in memory, and its adapter. The provider accepts every call and confirms it later.

Some payment processors answer only that they have received a call, and send its outcome as a notification. The
answer contains a reference, by which the adapter finds the call later. If the answer was lost, the adapter
searches the payment's list of calls for the operation's id, which the adapter sent with the call.

The list is always out of date: each reading shows the calls that existed at the previous reading. The provider
also reports the number of the payment's calls. If the list is shorter than this number, a missing call might
still exist, so `is_vouched` is false.
"""

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import orjson
from django.http import HttpRequest

from config.lib import clock
from payments.models import Operation, Payment
from payments.provider import (
    AmountRule,
    Books,
    CaptureRecord,
    CardForm,
    CardUse,
    DisputeRecord,
    DisputeStatus,
    Entry,
    ForgedNotification,
    Notification,
    Outcome,
    PaymentRecord,
    ProviderUnreachable,
    RefundRecord,
    Verdict,
)
from payments.provider import Card as CardFacts
from tests.payments.providers.conformance.desk import CallFailure, Card

SECRET = b"shared with the provider"
REASONS = {Card.DECLINED: "refused", Card.NO_MONEY: "insufficient_funds", Card.EXPIRED: "expired_card"}


@dataclass
class Act:
    """A call or a dashboard action that the provider has accepted. `becomes` is its final verdict."""

    key: UUID
    kind: str
    amount: int
    verdict: Verdict
    becomes: Verdict
    reason: str = ""
    action_url: str = ""
    refund: UUID | None = None
    share: UUID | None = None
    is_ours: bool = True
    is_refused: bool = False
    has_returned: bool = False
    reference: str = field(default_factory=lambda: f"act_{uuid4().hex}")
    at: datetime = field(default_factory=clock.now)


@dataclass
class Charge:
    """A charge for one payment, with all calls about it."""

    payment: UUID
    subject: UUID
    account: UUID
    amount: int
    currency: str
    card: Card
    made_at: datetime = field(default_factory=clock.now)
    state: str = ""  # asked, held, captured or voided
    acts: list[Act] = field(default_factory=list)
    listed: int = 0  # the next reading of the list returns this many of `acts`
    disputes: list[DisputeRecord] = field(default_factory=list)

    def given_back(self) -> int:
        """Return the sum of all refunds that are settled or pending."""
        gone = (Verdict.FAILED, Verdict.DECLINED)
        return sum(act.amount for act in self.acts if act.kind == "refund" and act.verdict not in gone)

    def capture(self) -> Act | None:
        """Return the capture that has succeeded, or None, even if the list does not show the capture yet."""
        done = (act for act in self.acts if (act.kind, act.verdict) == ("capture", Verdict.SUCCEEDED))
        return next(done, None)

    def list_acts(self) -> list[Act]:
        """Return the acts that existed at the previous reading of the list."""
        shown, self.listed = self.acts[: self.listed], len(self.acts)
        return shown


class AsynchronousProvider:
    """A payments.provider.Provider that never confirms a call in its answer. It sends notifications instead."""

    urls = ""
    page_origins: tuple[str, ...] = ("https://cards.example",)
    payment_origins: tuple[str, ...] = ()
    key_life = timedelta(days=7)

    def __init__(self) -> None:
        self.charges: dict[UUID, Charge] = {}
        self.tokens: dict[str, Card] = {}
        self.faults: dict[str, CallFailure] = {}
        self.broken: set[UUID] = set()
        self.outbox: list[dict[str, str | bool]] = []
        self.maximum: int | None = None
        self.written: list[tuple[datetime, UUID]] = []

    def amount_rule(self, currency: str) -> AmountRule:
        return AmountRule(minimum=100, step=5) if currency == "GBP" else AmountRule(step=10)

    def open_card_form(self, form: CardForm) -> str:
        return f"https://cards.example/{form.subject}"

    def register(self, payment: Payment, patience: float) -> Outcome:
        return Outcome(Verdict.SUCCEEDED)

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        def begin() -> Act:
            payment, known = operation.payment, self.tokens.get(card.token)
            if known is None:
                return Act(
                    operation.pk, "authorize", operation.amount, Verdict.DECLINED, Verdict.DECLINED, "no_card"
                )
            self.charges[payment.pk] = Charge(
                payment.pk, payment.subject, payment.merchant_id, payment.amount, payment.currency, known
            )
            amount = operation.amount if self.maximum is None else min(self.maximum, operation.amount)
            self.maximum = None
            becomes = Verdict.DECLINED if known in REASONS else Verdict.SUCCEEDED
            verdict = Verdict.NEEDS_ACTION if known == Card.ASKS else Verdict.PENDING
            page = f"https://cards.example/ask/{operation.pk}" if known == Card.ASKS else ""
            self.charges[payment.pk].state = "asked" if known == Card.ASKS else ""
            return Act(operation.pk, "authorize", amount, verdict, becomes, REASONS.get(known, ""), page)

        return self._call(operation, begin)

    def capture(self, operation: Operation, patience: float) -> Outcome:
        return self._call(operation, lambda: self._move(operation, "held"))

    def void(self, operation: Operation, patience: float) -> Outcome:
        return self._call(operation, lambda: self._move(operation, "held", "asked"))

    def _move(self, operation: Operation, *states: str) -> Act:
        charge = self.charges.get(operation.payment_id)
        if charge is not None and charge.state in states:
            return Act(operation.pk, operation.kind, operation.amount, Verdict.PENDING, Verdict.SUCCEEDED)
        return _refused(
            operation, f"already_{charge.state}" if charge and charge.state else "unknown_payment"
        )

    def refund(self, operation: Operation, patience: float) -> Outcome:
        return self._call(operation, lambda: self._begin_refund(operation))

    def _begin_refund(self, operation: Operation) -> Act:
        charge = self.charges.get(operation.payment_id)
        held_back = charge and any(row.status != DisputeStatus.WON for row in charge.disputes)
        if charge is None or charge.state != "captured" or held_back:
            return _refused(operation, "not_refundable")
        taken = next(act.amount for act in charge.acts if act.kind == "capture")
        if charge.given_back() + operation.amount > taken:
            return _refused(operation, "too_much")
        becomes, reason = end_of_refund(charge)
        act = Act(operation.pk, "refund", operation.amount, Verdict.PENDING, becomes, reason)
        act.refund, act.share = operation.refund_uuid, operation.share_uuid
        return act

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        if self.faults.pop("look_up", None):
            raise ConnectionResetError
        charge = self.charges.get(operation.payment_id)
        if charge is None:
            return Outcome(Verdict.NOT_FOUND, is_vouched=True)
        if operation.reference:
            acts, named = charge.acts, [act for act in charge.acts if act.reference == operation.reference]
        else:
            acts = charge.list_acts()
            named = [act for act in acts if act.key == operation.pk]
        found = named[0] if named else None
        if operation.kind == "capture" and (found is None or found.verdict == Verdict.FAILED):
            found = charge.capture() or found
        is_whole = len(acts) == len(charge.acts)
        return self._said(operation, found) if found else Outcome(Verdict.NOT_FOUND, is_vouched=is_whole)

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        if not hmac.compare_digest(request.headers.get("Signature", ""), sign(request.body)):
            raise ForgedNotification
        for item in orjson.loads(request.body)["items"]:
            if "key" not in item:
                yield Notification(item["id"], UUID(item["payment"]))
                continue
            ours = UUID(item["key"]) if item["is_ours"] else None
            verdict = Verdict(item["verdict"])
            yield Notification(item["id"], UUID(item["payment"]), item["kind"], verdict, ours)

    def movements(self, payment: Payment) -> Books:
        if self.faults.pop("movements", None):
            raise ProviderUnreachable
        charge = self.charges.get(payment.pk)
        if charge is None:
            return Books()
        currency, taken, capture = charge.currency, charge.capture(), None
        if taken is not None:
            capture = CaptureRecord(taken.reference, taken.amount, currency, taken.at)
        return Books(
            is_held=charge.state == "held",
            capture=capture,
            refunds=[
                _refund(act, currency)
                for act in charge.list_acts()
                if act.kind == "refund" and not act.is_refused
            ],
            disputes=list(charge.disputes),
        )

    def changed(self, since: datetime) -> Iterable[UUID]:
        return {payment for at, payment in self.written if at >= since}

    def payments(self, since: datetime) -> Iterable[PaymentRecord]:
        for charge in self.charges.values():
            if charge.made_at >= since:
                is_moved = charge.state in ("held", "captured", "voided")
                facts = CardFacts("visa", "4242", f"card of {charge.payment}")
                asked = (charge.subject, charge.amount, charge.currency)
                yield PaymentRecord(charge.payment, charge.account, *asked, is_moved=is_moved, card=facts)

    def entries(self, since: datetime) -> Iterable[Entry]:
        return ()

    def missing(self) -> Iterable[str]:
        return ()

    def _find(self, payment: UUID, key: UUID) -> Act | None:
        acts = self.charges[payment].acts if payment in self.charges else []
        return next((act for act in acts if act.key == key), None)

    def _call(self, operation: Operation, begin: Callable[[], Act]) -> Outcome:
        """Accept a call once per key. Return the answer that the current fault allows."""
        failure = self.faults.pop(operation.kind, None)
        if failure == CallFailure.REPLAYED_ERROR:
            self.broken.add(operation.pk)
        if operation.pk in self.broken or failure == CallFailure.ERROR:
            return Outcome(Verdict.UNKNOWN)
        if failure == CallFailure.SILENT:
            raise ConnectionResetError
        act = self._find(operation.payment_id, operation.pk)
        if act is None:
            act = begin()
            if operation.payment_id in self.charges:
                self.charges[operation.payment_id].acts.append(act)
                self.tell(operation.payment_id, act)
        if failure == CallFailure.DONE_SILENT:
            raise ConnectionResetError
        if failure == CallFailure.DONE_ERROR:
            return Outcome(Verdict.UNKNOWN)
        return self._said(operation, act)

    def _said(self, operation: Operation, act: Act) -> Outcome:
        facts = CardFacts("visa", "4242", f"card of {operation.payment_id}")
        is_open = act.verdict in (Verdict.PENDING, Verdict.NEEDS_ACTION)
        amount, reason = (None, "") if is_open else (act.amount, act.reason)
        return Outcome(act.verdict, act.reference, reason, act.action_url, facts, amount)

    def tell(self, payment: UUID, act: Act) -> None:
        """Queue a notification about the current state of an act, and mark the payment as changed."""
        self.tell_of(payment, key=str(act.key), kind=act.kind, verdict=act.verdict.value, is_ours=act.is_ours)

    def tell_of(self, payment: UUID, **facts: str | bool) -> None:
        self.written.append((clock.now(), payment))
        self.outbox.append({"id": str(uuid4()), "payment": str(payment), **facts})


def _refused(operation: Operation, reason: str) -> Act:
    ends = Verdict.FAILED
    return Act(operation.pk, operation.kind, operation.amount, ends, ends, reason, is_refused=True)


def end_of_refund(charge: Charge) -> tuple[Verdict, str]:
    """Return the final verdict on an accepted refund to the charge's card, and the reason if the refund fails."""
    fails = charge.card == Card.REFUND_FAILS
    return (Verdict.FAILED, "account_closed") if fails else (Verdict.SUCCEEDED, "")


def _refund(act: Act, currency: str) -> RefundRecord:
    return RefundRecord(
        reference=act.reference,
        amount=act.amount,
        currency=currency,
        verdict=act.verdict,
        at=act.at,
        reason=act.reason if act.verdict == Verdict.FAILED else "",
        has_returned=act.has_returned,
        operation=act.key if act.is_ours else None,
        refund=act.refund,
        share=act.share,
    )


def sign(body: bytes) -> str:
    return hmac.new(SECRET, body, "sha256").hexdigest()
