"""Helpers for the remedy tests: use a remedy as an operator, and change the bank's records."""

from collections.abc import Callable
from typing import Any

import pytest

from checkout import tasks
from checkout.remedies import giving_up, sending, settling_outside
from checkout.remedies.status_check import NotAllowed
from payments.inquiring import inquiries
from payments.models import Booking, Operation
from payments.providers.sandbox.models import Call
from tests import outside
from tests.factories import CAUSE
from tests.refusals import nothing_moves

ACCOUNT_CLOSED = "4000000000005126"


CHALLENGED = "4000002500003155"


NOTE = "Paid by bank transfer on Monday"


LONG_AGO = "2020-01-01T00:00Z"


def close(part: Operation) -> None:
    settling_outside.settle_outside(part.pk, note=NOTE, cause=CAUSE)


def send(operation: Operation) -> None:
    sending.send_again(operation.pk, cause=CAUSE)


def give_up(operation: Operation) -> None:
    giving_up.give_up(operation.pk, note=NOTE, cause=CAUSE)


def refuses(remedy: Callable[[Any], object], row: Any, words: str) -> None:
    """Check that a remedy raises NotAllowed with this reason and changes no row."""
    bookings = Booking.objects.count()
    with nothing_moves(), pytest.raises(NotAllowed, match=words):
        remedy(row)
    assert Booking.objects.count() == bookings


def change_bank_record(operation: Operation, **answer: Any) -> None:
    """Change the bank's record of an operation."""
    Call.objects.filter(reference=operation.pk).update(**answer)


def refund_in_dashboard(refund: Operation, amount: int) -> None:
    """In the bank's dashboard, refund an amount to the card of a refund. Let the bank notify the service."""
    outside.refund_outside(refund.payment, amount)


def look_into_disputes(operation: Operation) -> None:
    inquiries.open_inquiries([operation.payment_id])
    tasks.answer_inquiries()
