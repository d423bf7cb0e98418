"""A provider in memory that accepts everything and confirms it later, with its adapter and its desk.

As at processors that answer "received": what became of a call is told by notification, and found by look-up.
"""

import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import orjson
from django.http import HttpRequest
from django.test import RequestFactory

from config.lib import clock
from payments.models import Operation, Payment
from payments.provider import (
    SERVER_ERROR,
    AmountRule,
    CardForm,
    CardUse,
    DisputeRecord,
    DisputeStatus,
    Entry,
    ForgedNotification,
    Notification,
    Outcome,
    PaymentRecord,
    Provider,
    Record,
    Verdict,
)
from payments.provider import Card as CardFacts
from tests.payments.providers.conformance.desk import Card, Goes

SECRET = b"shared with the provider"
REASONS = {Card.DECLINED: "refused", Card.NO_MONEY: "insufficient_funds", Card.EXPIRED: "expired_card"}


@dataclass
class Act:
    """One call that was accepted, or an act in the dashboard: what it will come to when its time has come."""

    key: UUID
    kind: str
    amount: int
    verdict: Verdict
    becomes: Verdict
    reason: str = ""
    action_url: str = ""


@dataclass
class Charge:
    """The money of one payment, and all that was asked about it."""

    payment: UUID
    subject: UUID
    account: UUID
    amount: int
    currency: str
    card: Card
    made_at: datetime = field(default_factory=clock.now)
    state: str = ""  # held, captured, voided
    acts: list[Act] = field(default_factory=list)
    disputes: list[DisputeRecord] = field(default_factory=list)

    def given_back(self) -> int:
        """What was given back, or is promised."""
        gone = (Verdict.FAILED, Verdict.DECLINED)
        return sum(act.amount for act in self.acts if act.kind == "refund" and act.verdict not in gone)


class AsynchronousProvider:
    """Fulfils payments.provider.Provider: no call is confirmed by its answer, and most only by a notification."""

    urls = ""
    page_origins: tuple[str, ...] = ("https://cards.example",)
    payment_origins: tuple[str, ...] = ()
    key_life = timedelta(days=7)

    def __init__(self) -> None:
        self.charges: dict[UUID, Charge] = {}
        self.tokens: dict[str, Card] = {}
        self.faults: dict[str, Goes] = {}
        self.broken: set[UUID] = set()
        self.outbox: list[dict[str, str]] = []
        self.maximum: int | None = None
        self.changed: list[tuple[datetime, UUID, UUID]] = []
        self.disputed_at: list[tuple[datetime, UUID]] = []

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
        reason = f"already_{charge.state}" if charge and charge.state else "unknown_payment"
        return Act(operation.pk, operation.kind, operation.amount, Verdict.FAILED, Verdict.FAILED, reason)

    def refund(self, operation: Operation, patience: float) -> Outcome:
        return self._call(operation, lambda: self._begin_refund(operation))

    def _begin_refund(self, operation: Operation) -> Act:
        charge = self.charges.get(operation.payment_id)
        held_back = charge and any(row.status != DisputeStatus.WON for row in charge.disputes)
        if charge is None or charge.state != "captured" or held_back:
            return Act(
                operation.pk, "refund", operation.amount, Verdict.FAILED, Verdict.FAILED, "not_refundable"
            )
        taken = next(act.amount for act in charge.acts if act.kind == "capture")
        if charge.given_back() + operation.amount > taken:
            return Act(operation.pk, "refund", operation.amount, Verdict.FAILED, Verdict.FAILED, "too_much")
        fails = charge.card == Card.REFUND_FAILS
        becomes, reason = (Verdict.FAILED, "account_closed") if fails else (Verdict.SUCCEEDED, "")
        return Act(operation.pk, "refund", operation.amount, Verdict.PENDING, becomes, reason)

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        if self.faults.pop("look_up", None):
            raise ConnectionResetError
        charge = self.charges.get(operation.payment_id)
        found = self._find(operation.payment_id, operation.pk)
        if (
            operation.kind == "capture"
            and charge is not None
            and (found is None or found.verdict == Verdict.FAILED)
        ):
            found = next(
                (act for act in charge.acts if act.kind == "capture" and act.verdict == Verdict.SUCCEEDED),
                found,
            )
        return self._said(operation, found) if found else Outcome(Verdict.NOT_FOUND, is_vouched=True)

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        if not hmac.compare_digest(request.headers.get("Signature", ""), _signed(request.body)):
            raise ForgedNotification
        for item in orjson.loads(request.body)["items"]:
            if "disputed" in item:
                yield Notification(item["id"], disputed=UUID(item["disputed"]))
                continue
            record = self.record(UUID(item["payment"]), UUID(item["key"]))
            yield Notification(item["id"], replace(record, verdict=Verdict(item["verdict"])))

    def disputes(self, payment: Payment) -> Iterable[DisputeRecord]:
        return list(self.charges[payment.pk].disputes) if payment.pk in self.charges else []

    def disputed(self, since: datetime) -> Iterable[UUID]:
        return {payment for at, payment in self.disputed_at if at >= since}

    def records(self, since: datetime) -> Iterable[Record]:
        return [
            self.record(*keys) for keys in dict.fromkeys((p, k) for at, p, k in self.changed if at >= since)
        ]

    def refunds_of(self, payment: Payment) -> Iterable[Record]:
        keys = dict.fromkeys(key for _, of, key in self.changed if of == payment.pk)
        return [row for key in keys if (row := self.record(payment.pk, key)).kind == "refund"]

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

    def record(self, payment: UUID, key: UUID) -> Record:
        charge, act = self.charges[payment], self._find(payment, key)
        assert act is not None
        return Record(key, act.kind, act.verdict, payment, charge.account, act.amount, charge.currency)

    def _find(self, payment: UUID, key: UUID) -> Act | None:
        acts = self.charges[payment].acts if payment in self.charges else []
        return next((act for act in acts if act.key == key), None)

    def _call(self, operation: Operation, begin: Callable[[], Act]) -> Outcome:
        """Accept a call once a key, and answer as it shall go wrong."""
        goes = self.faults.pop(operation.kind, None)
        if goes == Goes.REPLAYED_ERROR:
            self.broken.add(operation.pk)
        if operation.pk in self.broken or goes == Goes.ERROR:
            return Outcome(Verdict.UNKNOWN, reason=SERVER_ERROR)
        if goes == Goes.SILENT:
            raise ConnectionResetError
        act = self._find(operation.payment_id, operation.pk)
        if act is None:
            act = begin()
            if operation.payment_id in self.charges:
                self.charges[operation.payment_id].acts.append(act)
                self.tell(operation.payment_id, act)
        if goes == Goes.DONE_SILENT:
            raise ConnectionResetError
        if goes == Goes.DONE_ERROR:
            return Outcome(Verdict.UNKNOWN, reason=SERVER_ERROR)
        return self._said(operation, act)

    def _said(self, operation: Operation, act: Act) -> Outcome:
        facts = CardFacts("visa", "4242", f"card of {operation.payment_id}")
        is_open = act.verdict in (Verdict.PENDING, Verdict.NEEDS_ACTION)
        amount, reason = (None, "") if is_open else (act.amount, act.reason)
        return Outcome(act.verdict, str(act.key), reason, act.action_url, facts, amount)

    def tell(self, payment: UUID, act: Act) -> None:
        """Write a line of the books, and a notification of the act as it stands."""
        self.changed.append((clock.now(), payment, act.key))
        line = {
            "id": str(uuid4()),
            "payment": str(payment),
            "key": str(act.key),
            "verdict": act.verdict.value,
        }
        self.outbox.append(line)


class AsynchronousDesk:
    def __init__(self) -> None:
        self.bank = AsynchronousProvider()
        self.provider: Provider = self.bank

    def token(self, card: Card, subject: UUID) -> str:
        token = f"card-{uuid4()}"
        self.bank.tokens[token] = card
        return token

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        charge = self.bank.charges[payment.pk]
        (act,) = charge.acts
        act.verdict = Verdict.PENDING
        if not confirms:
            act.becomes, act.reason = Verdict.DECLINED, "challenge_failed"

    def go_wrong(self, verb: str, goes: Goes) -> None:
        self.bank.faults[verb] = goes

    def hold_less(self, amount: int) -> None:
        self.bank.maximum = amount

    def settle(self) -> None:
        for charge in self.bank.charges.values():
            for act in charge.acts:
                if act.verdict == Verdict.PENDING:
                    self._settle(charge, act)

    def _settle(self, charge: Charge, act: Act) -> None:
        act.verdict = act.becomes
        if act.verdict == Verdict.SUCCEEDED and act.kind != "refund":
            charge.state = {"authorize": "held", "capture": "captured", "void": "voided"}[act.kind]
        self.bank.tell(charge.payment, act)

    def age_keys(self) -> None:
        self.bank.broken.clear()

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        charge = self.bank.charges[payment.pk]
        act = Act(uuid4(), kind, amount, Verdict.PENDING, Verdict.SUCCEEDED)
        charge.acts.append(act)
        self._settle(charge, act)

    def dispute(self, payment: Payment) -> None:
        now = clock.now()
        charge = self.bank.charges[payment.pk]
        facts = (str(uuid4()), payment.amount, charge.currency, "fraudulent", DisputeStatus.OPEN)
        charge.disputes.append(DisputeRecord(*facts, opened_at=now, respond_by=now + timedelta(days=7)))
        self._tell_dispute(payment)

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        charge = self.bank.charges[payment.pk]
        status = DisputeStatus.WON if is_won else DisputeStatus.LOST
        charge.disputes = [replace(row, status=status) for row in charge.disputes]
        self._tell_dispute(payment)

    def _tell_dispute(self, payment: Payment) -> None:
        self.bank.disputed_at.append((clock.now(), payment.pk))
        self.bank.outbox.append({"id": str(uuid4()), "disputed": str(payment.pk)})

    def messages(self) -> Sequence[HttpRequest]:
        """All of it in one message, as some providers send it."""
        items, self.bank.outbox = self.bank.outbox, []
        return [_message(items)] if items else []

    def forged(self) -> HttpRequest:
        return _message([{"id": "1", "disputed": str(UUID(int=7))}], signed=b"another body")


def _signed(body: bytes) -> str:
    return hmac.new(SECRET, body, "sha256").hexdigest()


def _message(items: list[dict[str, str]], *, signed: bytes = b"") -> HttpRequest:
    body = orjson.dumps({"items": items})
    headers = {"Signature": _signed(signed or body)}
    return RequestFactory().post(
        "/provider/notifications", body, content_type="application/json", headers=headers
    )
