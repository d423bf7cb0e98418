"""What goes out, as the API's document tells it; `presentation` builds it as plain dictionaries."""

from typing import Any

from rest_framework import serializers

from checkout.api.serializers import MAXIMUM, Category, CustomData
from checkout.models import Refund as RefundRow
from checkout.states import PAID, ShareStatus, Status, VoidReason
from config.lib import fields
from payments.models import Dispute, Operation

# Fields that only some states have (rule read.fields): in which they always stand, and in which they may.
ALWAYS: dict[str, tuple[Status, ...]] = {
    "expired_at": (Status.EXPIRED,),
    "authorized_at": (Status.AUTHORIZED, *PAID),
    "capture_before": (Status.AUTHORIZED, *PAID),
    "voided_at": (Status.VOIDED,),
    "void_reason": (Status.VOIDED,),
    "captured_at": PAID,
    "refunded_amount": PAID,
    "last_refund_at": PAID,
    "merchant_processor_fee": PAID,
    "merchant_service_fee": PAID,
    "refunds": (Status.REFUNDING, Status.REFUNDED),
}
SOMETIMES: dict[str, tuple[Status, ...]] = {
    "authorized_at": (Status.VOIDED,),
    "capture_before": (Status.VOIDED,),
    "refunds": (Status.CAPTURED,),
    "pending_operation": tuple(Status),
    "shares": tuple(Status),
    "disputes": PAID,
}


class ItemOut(serializers.Serializer[Any]):
    item_ref = fields.Text()
    name = fields.Text()
    quantity = fields.Integer(minimum=1, maximum=10_000)
    unit_price = fields.Integer(minimum=-MAXIMUM, maximum=MAXIMUM)
    currency = fields.Text(minimum=3, maximum=3)
    category = Category()
    custom_data = CustomData(allow_null=True)


class RefundOut(serializers.Serializer[Any]):
    refund_uuid = serializers.UUIDField()
    merchant_refund_ref = fields.Text()
    reason = fields.Text(maximum=500, allow_null=True)
    status = serializers.ChoiceField(RefundRow.Status.choices)
    amount = fields.Integer(minimum=1, maximum=MAXIMUM)
    created_at = fields.Timestamp()
    settled_at = fields.Timestamp(allow_null=True)
    failure_reason = fields.Text(maximum=40, allow_null=True)


class SharesOut(serializers.Serializer[Any]):
    count = fields.Integer(minimum=1, maximum=19)
    paid_count = fields.Integer(minimum=0, maximum=19)
    paid_amount = fields.Integer(minimum=0, maximum=MAXIMUM)


class DisputeOut(serializers.Serializer[Any]):
    dispute_uuid = serializers.UUIDField()
    amount = fields.Integer(minimum=1, maximum=MAXIMUM)
    reason = fields.Text(maximum=40)
    status = serializers.ChoiceField(Dispute.Status.choices)
    opened_at = fields.Timestamp()
    respond_by = fields.Timestamp(allow_null=True)


class CreatedCheckoutOut(serializers.Serializer[Any]):
    checkout_uuid = serializers.UUIDField()
    status = serializers.ChoiceField([Status.CREATED.value])
    checkout_url = serializers.URLField()
    expires_at = fields.Timestamp(allow_null=True)


class CheckoutOut(serializers.Serializer[Any]):
    checkout_uuid = serializers.UUIDField()
    merchant_order_id = fields.Text()
    status = serializers.ChoiceField(Status.choices)
    amount = fields.Integer(minimum=1, maximum=MAXIMUM)
    currency = fields.Text(minimum=3, maximum=3)
    checkout_url = serializers.URLField()
    expires_at = fields.Timestamp(allow_null=True)
    created_at = fields.Timestamp()
    items = serializers.ListField(child=ItemOut(), allow_empty=False, max_length=100)
    available_actions = serializers.ListField(
        child=serializers.ChoiceField(["capture", "cancel", "refund"]), max_length=2
    )
    expired_at = fields.Timestamp(required=False)
    authorized_at = fields.Timestamp(required=False)
    capture_before = fields.Timestamp(required=False)
    voided_at = fields.Timestamp(required=False)
    void_reason = serializers.ChoiceField(VoidReason.choices, required=False)
    captured_at = fields.Timestamp(required=False)
    refunded_amount = fields.Integer(minimum=0, maximum=MAXIMUM, required=False)
    last_refund_at = fields.Timestamp(required=False, allow_null=True)
    merchant_processor_fee = fields.Integer(minimum=0, maximum=0, required=False)
    merchant_service_fee = fields.Integer(minimum=0, maximum=0, required=False)
    refunds = serializers.ListField(child=RefundOut(), required=False, allow_empty=False)
    pending_operation = serializers.ChoiceField(Operation.Kind.choices, required=False)
    shares = SharesOut(required=False)
    disputes = serializers.ListField(child=DisputeOut(), required=False, allow_empty=False)


class CheckoutListOut(serializers.Serializer[Any]):
    checkouts = serializers.ListField(child=CheckoutOut(), max_length=200)
    next_cursor = fields.Text(maximum=500, allow_null=True)


class PaymentRequestOut(serializers.Serializer[Any]):
    payment_request_uuid = serializers.UUIDField()
    amount = fields.Integer(minimum=1, maximum=MAXIMUM)
    status = serializers.ChoiceField(ShareStatus.choices)


class SplitCheckoutOut(CheckoutOut):
    payment_requests = serializers.ListField(child=PaymentRequestOut(), max_length=19, required=False)


class TickedOut(serializers.Serializer[Any]):
    event_id = serializers.UUIDField(allow_null=True)


class ShareOut(serializers.Serializer[Any]):
    payment_request_uuid = serializers.UUIDField()
    status = serializers.ChoiceField(ShareStatus.choices)
