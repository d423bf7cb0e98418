"""What operators do in the tests of the remedies, and what the bank's books say meanwhile."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from checkout import tasks
from checkout.models import Checkout
from checkout.remedies import closing, giving_up, sending
from checkout.remedies.asking import NotAllowed
from payments.models import Booking, Operation
from payments.outside import inquiries
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Call
from tests.factories import CAUSE
from tests.refusals import nothing_moves

ACCOUNT_CLOSED = "4000000000005126"


CHALLENGED = "4000002500003155"


NOTE = "Paid by bank transfer on Monday"


LONG_AGO = "2020-01-01T00:00Z"


def close(part: Operation) -> None:
    closing.close_as_settled_otherwise(part.pk, note=NOTE, cause=CAUSE)


def send(operation: Operation) -> None:
    sending.send_again(operation.pk, cause=CAUSE)


def give_up(operation: Operation) -> None:
    giving_up.give_up(operation.pk, note=NOTE, cause=CAUSE)


def refuses(remedy: Callable[[Any], object], row: Any, words: str) -> None:
    """Check that a remedy is not allowed, says why, and moves nothing."""
    bookings = Booking.objects.count()
    with nothing_moves(), pytest.raises(NotAllowed, match=words):
        remedy(row)
    assert Booking.objects.count() == bookings


def said(operation: Operation, **answer: Any) -> None:
    """Let the bank's books say something else of an operation."""
    Call.objects.filter(reference=operation.pk).update(**answer)


def give_back_at_the_bank(checkout: Checkout, amount: int) -> None:
    """Let somebody refund a part in the provider's dashboard, and let it be settled."""
    give_back_at_the_bank_of(checkout.payment_id, amount)


def give_back_at_the_bank_of(payment_uuid: UUID | None, amount: int) -> None:
    """Let somebody refund a part of one payment there, and let it be settled."""
    assert payment_uuid is not None
    bank.act_in_dashboard(kind="refund", payment=payment_uuid, amount=amount)
    bank.look_up(key=payment_uuid, payment=payment_uuid, kind="refund")


def look_into_disputes(operation: Operation) -> None:
    inquiries.open_about([operation.payment_id])
    tasks.answer_inquiries()
