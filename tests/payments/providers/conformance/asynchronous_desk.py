"""The desk of the asynchronous provider, which confirms every call later."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import orjson
from django.http import HttpRequest
from django.test import RequestFactory

from config.lib import clock
from payments.models import Payment
from payments.provider import DisputeLine, DisputeRecord, DisputeStatus, Provider, Verdict
from tests.payments.providers.conformance.asynchronous import (
    Act,
    AsynchronousProvider,
    Charge,
    end_of_refund,
    sign,
)
from tests.payments.providers.conformance.desk import CallFailure, Card


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

    def make_calls_fail(self, verb: str, failure: CallFailure) -> None:
        self.bank.faults[verb] = failure

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
        self._settle(*self._act_outside(kind, payment, amount))

    def _act_outside(self, kind: str, payment: Payment, amount: int) -> tuple[Charge, Act]:
        charge = self.bank.charges[payment.pk]
        becomes, reason = end_of_refund(charge) if kind == "refund" else (Verdict.SUCCEEDED, "")
        act = Act(uuid4(), kind, amount, Verdict.PENDING, becomes, reason, is_ours=False)
        charge.acts.append(act)
        self.bank.tell(payment.pk, act)
        return charge, act

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        charge, act = self._act_outside("refund", payment, amount)
        if not pending:
            self._settle(charge, act)

    def return_refund(self, reference: str) -> None:
        for charge in self.bank.charges.values():
            for act in charge.acts:
                if act.reference == reference:
                    act.becomes, act.reason, act.has_returned = Verdict.FAILED, "account_closed", True
                    self._settle(charge, act)

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        now = clock.now()
        charge = self.bank.charges[payment.pk]
        facts = (str(uuid4()), amount or payment.amount, charge.currency, "fraudulent", DisputeStatus.OPEN)
        lines = (DisputeLine(f"line_{uuid4().hex}", is_back=False, at=now),)
        respond_by = now + timedelta(days=7)
        charge.disputes.append(DisputeRecord(*facts, opened_at=now, respond_by=respond_by, lines=lines))
        self._tell_dispute(payment)

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        charge = self.bank.charges[payment.pk]
        status = DisputeStatus.WON if is_won else DisputeStatus.LOST
        back = (DisputeLine(f"line_{uuid4().hex}", is_back=True, at=clock.now()),) if is_won else ()
        charge.disputes = [replace(row, status=status, lines=(*row.lines, *back)) for row in charge.disputes]
        self._tell_dispute(payment)

    def _tell_dispute(self, payment: Payment) -> None:
        self.bank.tell_of(payment.pk)

    def messages(self) -> Sequence[HttpRequest]:
        """Return all notifications in one message, as some providers send them."""
        items, self.bank.outbox = self.bank.outbox, []
        return [_message(items)] if items else []

    def forged(self) -> HttpRequest:
        return _message([{"id": "1", "payment": str(UUID(int=7))}], signed=b"another body")


def _message(items: list[dict[str, str | bool]], *, signed: bytes = b"") -> HttpRequest:
    body = orjson.dumps({"items": items})
    headers = {"Signature": sign(signed or body)}
    return RequestFactory().post(
        "/provider/notifications", body, content_type="application/json", headers=headers
    )
