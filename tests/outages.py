"""Helpers for tests of a failing provider: cause faults, record calls, let time pass, and run the pump."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

import pytest
from django.db.models import F

from checkout import captures, tasks
from checkout.models import Checkout
from payments.models import Operation, Payment
from payments.provider import Outcome
from payments.providers.sandbox import fault_injection
from payments.providers.sandbox.models import Charge
from tests.factories import CAUSE
from webhooks.models import Event

KINDS = ["authorize", "capture", "void", "refund"]
UNDONE = ["down", "error", "hang"]
DONE = ["done_then_hang", "done_then_reset", "done_then_error", "nonsense"]
InDoubt: TypeAlias = Callable[..., Operation]


def break_down(verb: str, mode: str, times: int = 1) -> None:
    fault_injection.set_fault(verb=verb, mode=mode, times=times)


def overhear(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, UUID]]:
    """Return a list to which each later call to the bank is added, including failed calls."""
    asked: list[tuple[str, UUID]] = []
    answer = fault_injection.call_with_faults

    def call(verb: str, arguments: dict[str, Any]) -> Outcome:
        asked.append((verb, arguments["key"]))
        return answer(verb, arguments)

    monkeypatch.setattr(fault_injection, "call_with_faults", call)
    return asked


def pump() -> None:
    """Make all open operations due, and run the pump."""
    Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
    tasks.finish_operations()


def pass_time(operation: Operation, **span: float) -> None:
    rows, times = Operation.objects.filter(pk=operation.pk), ("created_at", "first_sent_at", "last_sent_at")
    rows.update(**{name: F(name) - timedelta(**span) for name in times})


def seen(checkout: Checkout) -> tuple[str, str, str]:
    """Return the states of the checkout, of its newest payment and of the bank's newest charge."""
    checkout.refresh_from_db()
    payment, charge = Payment.objects.latest("created_at"), Charge.objects.order_by("-id").first()
    return checkout.status, payment.status, charge.state if charge else ""


def events() -> list[str]:
    return list(Event.objects.order_by("id").values_list("type", flat=True))


def leave_in_doubt(checkout: Checkout) -> Operation:
    """Start a capture that gets no response from the provider. Return the operation, which is in doubt."""
    for verb in ("capture", "look_up"):
        fault_injection.set_fault(verb=verb, mode="down", times=1)
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)
    return Operation.objects.select_related("payment").get(payment__subject=checkout.pk, kind="capture")
