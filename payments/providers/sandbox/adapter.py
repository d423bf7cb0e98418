"""The adapter of the sandbox bank, which implements the provider port."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest

from payments.models import Operation, Payment
from payments.provider import (
    AmountRule,
    Books,
    CardForm,
    CardUse,
    Entry,
    Notification,
    Outcome,
    PaymentRecord,
    Verdict,
)
from payments.providers.sandbox import client, notifications


class SandboxProvider:
    """Implements payments.provider.Provider for the environments `local` and `sandbox`."""

    urls = "payments.providers.sandbox.urls"
    page_origins: tuple[str, ...] = ()
    payment_origins: tuple[str, ...] = ()

    @property
    def key_life(self) -> timedelta:
        return timedelta(seconds=settings.SANDBOX_KEY_SECONDS)

    def amount_rule(self, currency: str) -> AmountRule:
        return AmountRule()

    def open_card_form(self, form: CardForm) -> str:
        session = client.call_bank(
            "open_session", subject=form.subject, return_url=form.return_url, page=form.page
        )
        return f"{client.bank_address()}/bank/card/{session}"

    def register(self, payment: Payment, patience: float) -> Outcome:
        return Outcome(Verdict.SUCCEEDED)

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        payment = operation.payment
        charge = {
            "payment": payment.pk,
            "account": payment.merchant_id,
            "amount": operation.amount,
            "currency": payment.currency,
            "return_url": card.return_url,
        }
        outcome = client.call_for_outcome(
            "authorize",
            patience=patience,
            key=operation.pk,
            charge=charge,
            subject=payment.subject,
            card_token=card.token,
        )
        return _with_address(outcome)

    def capture(self, operation: Operation, patience: float) -> Outcome:
        return _ask_bank("capture", operation, patience)

    def void(self, operation: Operation, patience: float) -> Outcome:
        return _ask_bank("void", operation, patience)

    def refund(self, operation: Operation, patience: float) -> Outcome:
        purpose = {"refund": operation.refund_uuid, "share": operation.share_uuid}
        return _ask_bank("refund", operation, patience, amount=operation.amount, **purpose)

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        return _with_address(_ask_bank("look_up", operation, patience, kind=operation.kind))

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        return [notifications.read_message(request.headers.get(notifications.HEADER, ""), request.body)]

    def movements(self, payment: Payment) -> Books:
        books: Books = client.call_bank("movements", payment=payment.pk)
        return books

    def changed(self, since: datetime) -> Iterable[UUID]:
        payment_ids: list[UUID] = client.call_bank("changed", since=since)
        return payment_ids

    def payments(self, since: datetime) -> Iterable[PaymentRecord]:
        records: list[PaymentRecord] = client.call_bank("payments", since=since)
        return records

    def entries(self, since: datetime) -> Iterable[Entry]:
        return ()

    def missing(self) -> Iterable[str]:
        return ()


def _ask_bank(verb: str, operation: Operation, patience: float, **more: Any) -> Outcome:
    facts = {"key": operation.pk, "payment": operation.payment_id, **more}
    return client.call_for_outcome(verb, patience=patience, **facts)


def _with_address(outcome: Outcome) -> Outcome:
    return (
        replace(outcome, action_url=f"{client.bank_address()}{outcome.action_url}")
        if outcome.action_url
        else outcome
    )
