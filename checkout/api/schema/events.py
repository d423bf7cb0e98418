"""What stands under `data` of each event, as the API's document tells it (rules event.*)."""

from typing import Any

from rest_framework import serializers

from checkout.api.serializers import MAXIMUM
from checkout.states import Status, VoidReason
from config.lib import fields
from webhooks.models import EventType


class AuthorizedDataOut(serializers.Serializer[Any]):
    checkout_uuid = serializers.UUIDField()
    merchant_order_id = fields.Text()
    status = serializers.ChoiceField([Status.AUTHORIZED.value])
    amount = fields.Integer(minimum=1, maximum=MAXIMUM)
    currency = fields.Text(minimum=3, maximum=3)
    user_uuid = serializers.UUIDField(allow_null=True)


class VoidedDataOut(serializers.Serializer[Any]):
    checkout_uuid = serializers.UUIDField()
    merchant_order_id = fields.Text()
    status = serializers.ChoiceField([Status.VOIDED.value])
    reason = serializers.ChoiceField(VoidReason.choices)


class OptInOrderOut(serializers.Serializer[Any]):
    merchant_order_id = fields.Text()
    checkout_uuid = serializers.UUIDField()
    payment_request_uuid = serializers.UUIDField(allow_null=True)


class OptInCustomerOut(serializers.Serializer[Any]):
    name = fields.Text(allow_null=True)
    email = serializers.EmailField()
    phone = fields.Text(maximum=16, allow_null=True)


class OptInOut(serializers.Serializer[Any]):
    email_marketing = serializers.ChoiceField([True], allow_null=True)
    sms_marketing = serializers.ChoiceField([True], allow_null=True)
    opted_in_at = fields.Timestamp()
    placement = serializers.ChoiceField(["success_page", "pay_link", "app", "email_link", "other"])
    text_version = serializers.IntegerField(min_value=1)


class OptedInDataOut(serializers.Serializer[Any]):
    customer_id = serializers.UUIDField()
    subject = serializers.ChoiceField(["lead", "friend"])
    order = OptInOrderOut()
    customer = OptInCustomerOut()
    opt_in = OptInOut()


# None: an object that is tied to no checkout, for a receiver to ignore.
EVENT_DATA: dict[EventType, type[serializers.Serializer[Any]] | None] = {
    EventType.AUTHORIZED: AuthorizedDataOut,
    EventType.VOIDED: VoidedDataOut,
    EventType.OPTED_IN: OptedInDataOut,
    EventType.TEST: None,
}
