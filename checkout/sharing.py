"""Who pays, and how the cost is shared (INTERFACE.md 5)."""

from uuid import UUID

from django.db import transaction

from checkout import splitting
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.states import Status
from checkout.transitions import NotPayable, OperationInProgress
from payments import operations


def join(checkout_uuid: UUID, customer: Customer) -> None:
    """Make this person the lead; whoever was it before finds that out on their page.

    Raises NotPayable, OperationInProgress.
    """
    with transaction.atomic(durable=True):
        checkout = _changeable(checkout_uuid)
        if checkout.lead_id != customer.pk:
            checkout.lead, checkout.people = customer, None
            checkout.save(update_fields=["lead", "people", "updated_at"])
            checkout.payment_requests.all().delete()


def split_equally(checkout_uuid: UUID, people: int) -> None:
    """Share the cost between `people`, the lead counted; 1 is all mine. What does not divide is the lead's.

    Raises ValueError, NotPayable, OperationInProgress.
    """
    with transaction.atomic(durable=True):
        checkout = _changeable(checkout_uuid)
        _, each = splitting.equally(checkout.amount, people)
        checkout.people = people
        checkout.save(update_fields=["people", "updated_at"])
        checkout.payment_requests.all().delete()
        PaymentRequest.objects.bulk_create(
            PaymentRequest(checkout=checkout, amount=each) for _ in range(people - 1)
        )


def _changeable(checkout_uuid: UUID) -> Checkout:
    """Until a card operation starts, everything about who pays may change."""
    checkout = Checkout.objects.locked(checkout_uuid)
    if checkout.status != Status.CREATED:
        raise NotPayable(checkout.status)
    if operations.open_operation(checkout.pk) is not None:
        raise OperationInProgress
    return checkout
