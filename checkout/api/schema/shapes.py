"""Shapes of answers and events, as the API's document describes them.

`presentation` and `events` build them. A shape is a list of field names, each a row of
config/openapi/field_table.py. `name?` can be null, and `[name]` can be missing.
"""

from checkout.states import PAID, Status
from webhooks.models import EventType

SHAPES = {
    "CreatedCheckout": "checkout_uuid status checkout_url expires_at? payable_until",
    "Checkout": "checkout_uuid merchant_order_id status amount currency checkout_url expires_at? created_at updated_at"
    " metadata items available_actions [payable_until] [expired_at] [authorized_at] [capture_before]"
    " [voided_at] [void_reason] [captured_at]"
    " [refunded_amount] [last_refund_at?] [merchant_processor_fee] [merchant_service_fee] [refunds]"
    " [pending_operation] [shares] [disputes]",
    "Item": "item_ref name quantity unit_price currency category custom_data?",
    "Refund": "refund_uuid merchant_refund_ref reason? status amount created_at settled_at? failure_reason?",
    "Shares": "count paid_count paid_amount",
    "Dispute": "dispute_uuid amount reason status opened_at respond_by?",
    "CheckoutList": "checkouts next_cursor?",
    "AuthorizedData": "checkout_uuid merchant_order_id status amount currency user_uuid?",
    "VoidedData": "checkout_uuid merchant_order_id status reason",
    "OptedInData": "customer_id subject order customer opt_in",
    "OptInOrder": "merchant_order_id checkout_uuid payment_request_uuid?",
    "OptInCustomer": "name? email phone?",
    "OptIn": "email_marketing? sms_marketing? opted_in_at placement text_version",
}
# The shape of each event's `data` (rules event.*). None means an object that a receiver can ignore.
EVENT_DATA: dict[EventType, str | None] = {
    EventType.AUTHORIZED: "AuthorizedData",
    EventType.VOIDED: "VoidedData",
    EventType.OPTED_IN: "OptedInData",
    EventType.TEST: None,
}
# Fields that only some statuses have (rule read.fields): those that are always present, and those that can be
# present.
ALWAYS: dict[str, tuple[Status, ...]] = {
    "payable_until": (Status.CREATED, Status.EXPIRED),
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
