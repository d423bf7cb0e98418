"""What a checkout tells its merchant (SPEC.md part 6)."""

from datetime import datetime

from checkout.models import Checkout, MerchantCustomer
from webhooks import outbox
from webhooks.models import EventType


def authorized(checkout: Checkout, at: datetime) -> None:
    """The customer has paid, the funds are held until `capture_before`."""
    person = None
    if checkout.lead_id is not None:
        person, _ = MerchantCustomer.objects.get_or_create(
            merchant_id=checkout.merchant_id, customer_id=checkout.lead_id
        )
    outbox.emit(
        checkout.merchant,
        EventType.AUTHORIZED,
        {
            "checkout_uuid": str(checkout.pk),
            "merchant_order_id": checkout.merchant_order_id,
            "status": checkout.status,
            "amount": checkout.amount,
            "currency": checkout.currency,
            "user_uuid": str(person.pk) if person else None,
        },
        at=at,
        checkout_uuid=checkout.pk,
        valid_until=checkout.capture_before,
    )


def voided(checkout: Checkout, at: datetime) -> None:
    """The authorization was released; whatever still says that it is held is superseded."""
    outbox.supersede(checkout.pk, at)
    outbox.emit(
        checkout.merchant,
        EventType.VOIDED,
        {
            "checkout_uuid": str(checkout.pk),
            "merchant_order_id": checkout.merchant_order_id,
            "status": checkout.status,
            "reason": checkout.void_reason,
        },
        at=at,
        checkout_uuid=checkout.pk,
    )
