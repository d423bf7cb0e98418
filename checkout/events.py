"""Events that a checkout emits to its merchant (rules event.authorized, event.voided)."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings

from checkout.models import Checkout, MerchantCustomer
from checkout.states import VoidReason
from webhooks import outbox
from webhooks.models import EventType
from webhooks.outbox import OutboxMessage


def authorized(checkout: Checkout, at: datetime) -> None:
    """Emit `checkout.authorized`: the customer's card is held until `capture_before`."""
    outbox.emit(
        checkout.merchant,
        EventType.AUTHORIZED,
        {
            "checkout_uuid": str(checkout.pk),
            "merchant_order_id": checkout.merchant_order_id,
            "status": checkout.status,
            "amount": checkout.amount,
            "currency": checkout.currency,
            "user_uuid": str(_person(checkout.merchant_id, checkout.lead_id)) if checkout.lead_id else None,
        },
        at=at,
        checkout_uuid=checkout.pk,
        valid_until=checkout.capture_before,
    )


def _person(merchant_uuid: UUID, customer_uuid: UUID) -> UUID:
    """Return the id under which a merchant knows a person. It is made when it is first needed."""
    person, _ = MerchantCustomer.objects.get_or_create(merchant_id=merchant_uuid, customer_id=customer_uuid)
    return person.pk


def voided(checkouts: Sequence[Checkout]) -> None:
    """Emit `checkout.voided` for each checkout, and supersede the events that say that it is held."""
    ends = {checkout.pk: checkout.voided_at for checkout in checkouts if checkout.voided_at}
    outbox.supersede_all(ends)
    told = _told(checkouts)
    outbox.emit_all(
        EventType.VOIDED,
        [
            OutboxMessage(
                checkout.merchant_id,
                _voided(checkout),
                max(ends[checkout.pk], told.get(checkout.pk, ends[checkout.pk])),
                checkout.pk,
            )
            for checkout in checkouts
        ],
    )


def _told(checkouts: Sequence[Checkout]) -> dict[UUID, datetime]:
    """Return the time of the last event of each checkout whose deadline can be before that event.

    This is possible only where time can be advanced. The deadline of a hold can then be before the moment at
    which its card was held. Rule sandbox.advance.
    """
    lapsed = [checkout.pk for checkout in checkouts if checkout.void_reason == VoidReason.AUTH_EXPIRED]
    return outbox.last_told(lapsed) if settings.SANDBOX and lapsed else {}


def _voided(checkout: Checkout) -> dict[str, str]:
    return {
        "checkout_uuid": str(checkout.pk),
        "merchant_order_id": checkout.merchant_order_id,
        "status": checkout.status,
        "reason": checkout.void_reason,
    }
