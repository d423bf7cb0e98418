"""Serializers of the helper API's responses (rules sandbox.*)."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers as drf

from checkout.api.common_fields import AMOUNT
from checkout.api.responses import CheckoutOut
from checkout.models import PaymentRequest
from checkout.split.split_amounts import MAX_PEOPLE
from checkout.states import ShareStatus, Status
from config.lib.api import fields
from config.lib.api.responses import Computed, OpenChoice, Out

PAYMENT_REQUEST_UUID = "The id of the mate's share."
SHARE_STATUS = "The status of the mate's share."


class PaymentRequestOut(Out):
    """A mate's share with its amount."""

    payment_request_uuid = drf.UUIDField(source="pk", help_text=PAYMENT_REQUEST_UUID)
    amount = AMOUNT()
    status = OpenChoice(ShareStatus, help_text=SHARE_STATUS)


class ShareOut(Out):
    """A mate's share."""

    payment_request_uuid = drf.UUIDField(source="pk", help_text=PAYMENT_REQUEST_UUID)
    status = OpenChoice(ShareStatus, help_text=SHARE_STATUS)


def _payment_requests(checkout: Any) -> QuerySet[PaymentRequest]:
    return PaymentRequest.objects.filter(checkout=checkout.pk).order_by("position")


class SplitCheckoutOut(CheckoutOut):
    """A checkout with its mates' shares, if it has any."""

    payment_requests = Computed(
        _payment_requests,
        fields.List(child=PaymentRequestOut(), max_length=MAX_PEOPLE - 1),
        required=False,
        help_text="The mates' shares.",
    )

    SOMETIMES = CheckoutOut.SOMETIMES | {"payment_requests": tuple(Status)}


class TickedOut(Out):
    """The event of an opt-in."""

    event_id = drf.UUIDField(allow_null=True, help_text="The id of the event, the same in all its attempts.")
