"""The desk of the sandbox bank."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import orjson
import pytest
from django.db.models import F
from django.http import HttpRequest
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from config.lib.web import http
from payments.models import Operation, Payment
from payments.provider import Provider
from payments.providers.sandbox import bank, client, fault_injection, journal, notifications, settling
from payments.providers.sandbox.adapter import SandboxProvider
from payments.providers.sandbox.models import BankNotification, Call
from tests.payments.providers.conformance.desk import CallFailure, Card

NUMBERS = {
    Card.GOOD: "4242424242424242",
    Card.DECLINED: "4000000000000002",
    Card.NO_MONEY: "4000000000009995",
    Card.EXPIRED: "4000000000000069",
    Card.ASKS: "4000002500003155",
    Card.REFUND_FAILS: "4000000000005126",
    Card.DISPUTED: "4242424242424242",
}
MODES = {
    CallFailure.SILENT: "down",
    CallFailure.DONE_SILENT: "done_then_reset",
    CallFailure.ERROR: "error",
    CallFailure.DONE_ERROR: "done_then_error",
    CallFailure.REPLAYED_ERROR: "replayed_500",
}


class SandboxDesk:
    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        self.provider: Provider = SandboxProvider()
        settings.SANDBOX_REFUND_SECONDS = 60
        self.settings, self.sent = settings, list[HttpRequest]()
        monkeypatch.setattr(http, "post", self._post)

    def _post(self, url: str, body: bytes, headers: dict[str, str], *, seconds: float) -> http.Response:
        self.sent.append(_message(body, headers[notifications.HEADER]))
        return http.Response(204, b"", {})

    def token(self, card: Card, subject: UUID) -> str:
        return bank.tokenise(subject=subject, number=NUMBERS[card])

    def answer(self, payment: Payment, *, confirms: bool) -> None:
        asked = payment.operations.get(kind=Operation.Kind.AUTHORIZE)
        bank.answer_challenge(key=asked.pk, is_confirmed=confirms)

    def make_calls_fail(self, verb: str, failure: CallFailure) -> None:
        fault_injection.set_fault(verb=verb, mode=MODES[failure], times=1)

    def hold_less(self, amount: int) -> None:
        fault_injection.set_fault(verb="authorize", mode="partial_hold", times=1)

    def settle(self) -> None:
        bank_calls = Call.objects.filter(settles_at__isnull=False)
        bank_calls.update(settles_at=F("settles_at") - timedelta(hours=1))
        settling.settle_due()

    def age_keys(self) -> None:
        self.settings.SANDBOX_KEY_SECONDS = 0

    def in_dashboard(self, kind: str, payment: Payment, amount: int) -> None:
        client.call_bank("act_in_dashboard", kind=kind, payment=payment.pk, amount=amount)

    def refund_outside(self, payment: Payment, amount: int, pending: bool = False) -> None:
        facts = {"kind": "refund", "payment": payment.pk, "amount": amount}
        reference = client.call_bank("act_in_dashboard", **facts)
        if not pending:
            client.call_bank("end_refund", payment=payment.pk, reference=reference)

    def return_refund(self, reference: str) -> None:
        payment = Call.objects.get(pk=reference).charge.payment
        client.call_bank("end_refund", payment=payment, reference=reference)

    def dispute(self, payment: Payment, amount: int | None = None) -> None:
        client.call_bank("dispute", payment=payment.pk, amount=amount)

    def decide(self, payment: Payment, *, is_won: bool) -> None:
        client.call_bank("decide", payment=payment.pk, is_won=is_won)

    def messages(self) -> Sequence[HttpRequest]:
        for call in Call.objects.exclude(pk__in=BankNotification.objects.values("call")):
            journal.write_notification(call)  # like other providers, the bank notifies about every call
        notifications.send_due()
        sent, self.sent = self.sent, []
        return sent

    def forged(self) -> HttpRequest:
        body = orjson.dumps({"id": "n", "verdict": "succeeded", "payment": str(UUID(int=7))})
        return _message(body, notifications.sign(b"another body", 0))


def _message(body: bytes, signature: str) -> HttpRequest:
    headers = {notifications.HEADER: signature}
    return RequestFactory().post(
        "/provider/notifications", body, content_type="application/json", headers=headers
    )
