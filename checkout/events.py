"""Emits the events about a checkout to its merchant (rules event.authorized, event.voided)."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from rest_framework import serializers as drf

from checkout.api.common_fields import AMOUNT, CHECKOUT_UUID, CURRENCY, MERCHANT_ORDER_ID, VOID_REASON
from checkout.models import Checkout, MerchantCustomer
from checkout.states import Status, VoidReason
from config.lib.api.responses import Constant, Out
from webhooks import outbox
from webhooks.models import EventType
from webhooks.outbox import OutboxMessage


class AuthorizedCheckout(NamedTuple):
    """A held checkout, with the id by which the merchant identifies the lead."""

    checkout: Checkout
    user_uuid: UUID | None


class AuthorizedDataOut(Out):
    """The data in the event `checkout.authorized`."""

    checkout_uuid = CHECKOUT_UUID(source="checkout.pk")
    merchant_order_id = MERCHANT_ORDER_ID(source="checkout.merchant_order_id")
    status = Constant(
        Status.AUTHORIZED, source="checkout.status", help_text="The status of the checkout; see States."
    )
    amount = AMOUNT(source="checkout.amount")
    currency = CURRENCY(source="checkout.currency")
    user_uuid = drf.UUIDField(
        allow_null=True,
        help_text="The customer's id, the same as `customer_id`: stable at your shop, different at other merchants.",
    )


class VoidedDataOut(Out):
    """The data in the event `checkout.voided`."""

    checkout_uuid = CHECKOUT_UUID(source="pk")
    merchant_order_id = MERCHANT_ORDER_ID()
    status = Constant(Status.VOIDED, help_text="The status of the checkout; see States.")
    reason = VOID_REASON(source="void_reason")


def emit_authorized(checkout: Checkout, at: datetime) -> None:
    """Emit `checkout.authorized`: the money is held on the customer's card until `capture_before`."""
    person = _merchant_customer_id(checkout.merchant_id, checkout.lead_id) if checkout.lead_id else None
    outbox.emit(
        checkout.merchant,
        EventType.AUTHORIZED,
        AuthorizedDataOut.write(AuthorizedCheckout(checkout, person)),
        at=at,
        checkout_uuid=checkout.pk,
        valid_until=checkout.capture_before,
    )


def _merchant_customer_id(merchant_uuid: UUID, customer_uuid: UUID) -> UUID:
    """Return the merchant's id for a customer. If there is no such id yet, create it."""
    person, _ = MerchantCustomer.objects.get_or_create(merchant_id=merchant_uuid, customer_id=customer_uuid)
    return person.pk


def emit_voided(checkouts: Sequence[Checkout]) -> None:
    """Emit `checkout.voided` for each checkout, and supersede the `checkout.authorized` event about it."""
    ends = {checkout.pk: checkout.voided_at for checkout in checkouts if checkout.voided_at}
    outbox.supersede_all(ends)
    event_times = _last_event_times(checkouts)
    outbox.emit_all(
        EventType.VOIDED,
        [
            OutboxMessage(
                checkout.merchant_id,
                VoidedDataOut.write(checkout),
                max(ends[checkout.pk], event_times.get(checkout.pk, ends[checkout.pk])),
                checkout.pk,
            )
            for checkout in checkouts
        ],
    )


def _last_event_times(checkouts: Sequence[Checkout]) -> dict[UUID, datetime]:
    """Return the time of the last event about each lapsed checkout. Outside the sandbox, return {}.

    In the sandbox, a call can move the deadline of a hold to a time before the hold's `checkout.authorized`
    event. The `checkout.voided` event must not have an earlier time than that event. Rule sandbox.advance.
    """
    lapsed = [checkout.pk for checkout in checkouts if checkout.void_reason == VoidReason.AUTH_EXPIRED]
    return outbox.last_event_times(lapsed) if settings.SANDBOX and lapsed else {}
