"""Serializers for the API's responses about checkouts (rules create.answer, read.fields, read.refunds, read.shares)."""

from functools import partial
from typing import Any

from rest_framework import serializers as drf

from checkout import current_checkouts, refunds, states
from checkout.api import detailed_reads
from checkout.api.common_fields import (
    AMOUNT,
    CHECKOUT_UUID,
    CREATED_AT,
    CURRENCY,
    MERCHANT_ORDER_ID,
    STATUS,
    VOID_REASON,
)
from checkout.api.serializers import CATEGORY, CUSTOM_DATA, MAXIMUM, Category, CustomData, ItemIn, Metadata
from checkout.models import Refund
from checkout.split.split_amounts import MAX_PEOPLE
from checkout.states import PAID, Status
from config.lib.api import fields
from config.lib.api.responses import Computed, Constant, OpenChoice, Out, Time
from payments.models import Dispute, Operation

ACTIONS = ("capture", "cancel", "refund")
CHECKOUT_URL = partial(
    drf.URLField,
    source="url",
    help_text="The hosted page. Send the customer to this URL, exactly as it is.",
)
EXPIRES_AT = partial(
    Time,
    allow_null=True,
    help_text="`merchant_expires_at` as you sent it. Null if you did not send it.",
)
PAYABLE_UNTIL = partial(
    Time, help_text="When the unpaid checkout expires automatically, even if you set the time."
)
FEE = partial(drf.IntegerField, min_value=0, default=0, help_text="Reserved. Currently always 0.")


def available_actions_field(**options: Any) -> fields.List:
    """Return the serializer field for the actions that are allowed now."""
    words = "The actions that the checkout allows now."
    return fields.List(child=OpenChoice(ACTIONS), help_text=words, **options)


class CreatedCheckoutOut(Out):
    """Response to a request that creates a checkout."""

    checkout_uuid = CHECKOUT_UUID(source="pk")
    status = Constant(Status.CREATED, help_text="The status of the checkout; see States.")
    checkout_url = CHECKOUT_URL()
    expires_at = EXPIRES_AT()
    payable_until = PAYABLE_UNTIL()


class ItemOut(ItemIn):
    """One line of the order, as the merchant sent it."""

    currency = CURRENCY()
    category = Category(help_text=CATEGORY)
    custom_data = CustomData(allow_null=True, help_text=CUSTOM_DATA)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        item: dict[str, Any] = instance._asdict()
        return item


class RefundOut(Out):
    """A refund. The data comes from the table row, or from a JSON object that PostgreSQL made from the row."""

    refund_uuid = drf.UUIDField(source="id", help_text="The id of the refund.")
    merchant_refund_ref = fields.Text(
        help_text="Your own reference, unique among all your refunds. Repeating it for the same checkout is "
        "safe."
    )
    reason = fields.Text(minimum=0, maximum=500, allow_null=True, help_text="Your reason, in your own words.")
    status = OpenChoice(
        Refund.Status,
        help_text="`pending` until the provider has confirmed or refused the refund. How long this takes depends on "
        "the provider and on the card's bank.",
    )
    amount = AMOUNT()
    created_at = CREATED_AT()
    settled_at = Time(
        allow_null=True,
        help_text="When the provider confirmed the refund. Null until then. After this time, the customer's bank can "
        "take a few days to show the money.",
    )
    failure_reason = fields.Text(
        maximum=40, allow_null=True, help_text="Why the provider refused the refund. Null if it did not."
    )


class DisputeOut(Out):
    """A dispute. The data comes from the table row, or from a JSON object that PostgreSQL made from the row."""

    dispute_uuid = drf.UUIDField(source="id", help_text="The id of the dispute.")
    amount = drf.IntegerField(
        min_value=1, max_value=MAXIMUM, help_text="Minor units that the payer's bank has taken back."
    )
    reason = fields.Text(maximum=40, help_text="The provider's name for the reason.")
    status = OpenChoice(
        Dispute.Status,
        help_text="`open` until the bank decides. `won`: you get the money back. `lost`: the payer keeps "
        "the money.",
    )
    opened_at = Time(help_text="When the payer's bank opened the dispute.")
    respond_by = Time(
        allow_null=True,
        help_text="The end of the period in which the operators can submit evidence. Null if the bank sets "
        "no end.",
    )


class SharesOut(Out):
    """The number of shares and the sums of their amounts, without names (rules read.shares, share.privacy)."""

    count = drf.IntegerField(
        min_value=1, max_value=MAX_PEOPLE - 1, help_text="How many mates were asked to pay."
    )
    pledged_count = drf.IntegerField(
        min_value=0,
        max_value=MAX_PEOPLE - 1,
        help_text="How many of these mates have pledged: a card is held for the share until you capture.",
    )
    paid_count = drf.IntegerField(
        min_value=0,
        max_value=MAX_PEOPLE - 1,
        help_text="How many of these mates have paid. A refunded mate no longer counts.",
    )
    paid_amount = drf.IntegerField(
        min_value=0, max_value=MAXIMUM, help_text="Minor units that these mates have paid."
    )

    def to_representation(self, instance: list[dict[str, Any]]) -> dict[str, Any]:
        paid = [share["amount"] for share in instance if share["status"] in states.SHARE_PAID]
        pledged = sum(share["status"] == states.ShareStatus.PLEDGED for share in instance)
        counts = {"count": len(instance), "pledged_count": pledged, "paid_count": len(paid)}
        return counts | {"paid_amount": sum(paid)}


def _allowed_actions(checkout: Any) -> list[str]:
    is_standing = any(part["status"] in Dispute.STANDING for part in checkout.dispute_parts)
    is_disputed = is_standing and refunds.dispute_blocking_refund(checkout) is not None
    kind = detailed_reads.pending_kind(checkout)
    return current_checkouts.available_actions(checkout, open_kind=kind, is_disputed=is_disputed)


class StandingOut(Out):
    """The status of a checkout and the actions that are allowed. The error about a refused action contains them.

    Rule api.conflict.
    """

    status = STATUS()
    available_actions = Computed(_allowed_actions, available_actions_field())


class CheckoutOut(Out):
    """A complete checkout. Its status decides which fields are included (rule read.fields).

    The row must come from a query with both `with_parts` and `with_read_at`.
    """

    checkout_uuid = CHECKOUT_UUID(source="pk")
    merchant_order_id = MERCHANT_ORDER_ID()
    status = STATUS()
    amount = AMOUNT()
    currency = CURRENCY()
    checkout_url = CHECKOUT_URL()
    expires_at = EXPIRES_AT()
    created_at = CREATED_AT()
    updated_at = Computed(detailed_reads.changed_at, Time(), help_text="When the checkout last changed.")
    metadata = Computed(
        lambda checkout: checkout.metadata or {},
        Metadata(),
        help_text="Your own data for the checkout. Every read returns it, or `{}` if you sent no data. "
        "Payers never see it. Do not put personal data in it.",
    )
    items = fields.List(
        child=ItemOut(),
        source="bill",
        allow_empty=False,
        max_length=100,
        help_text="The lines, in the order in which you sent them.",
    )
    available_actions = Computed(_allowed_actions, available_actions_field())
    payable_until = PAYABLE_UNTIL(required=False)
    expired_at = Time(required=False, help_text="When the unpaid checkout expired.")
    authorized_at = Time(required=False, help_text="When the card was held.")
    capture_before = Time(
        required=False, help_text="When the hold ends automatically: two minutes after `authorized_at`."
    )
    voided_at = Time(
        required=False, help_text="When the hold was released, or the unpaid checkout was cancelled."
    )
    void_reason = VOID_REASON(required=False)
    captured_at = Time(required=False, help_text="When the money moved.")
    refunded_amount = drf.IntegerField(
        min_value=0,
        max_value=MAXIMUM,
        required=False,
        help_text="Minor units returned to the customer: 0 until the refund has settled, then the full "
        "amount.",
    )
    last_refund_at = Time(
        allow_null=True, required=False, help_text="When the refund settled. Null until then."
    )
    merchant_processor_fee = FEE()
    merchant_service_fee = FEE()
    refunds = fields.List(
        child=RefundOut(),
        source="refund_parts",
        allow_empty=False,
        required=False,
        help_text="The refunds, newest first, including failed ones.",
    )
    pending_operation = Computed(
        detailed_reads.pending_kind,
        OpenChoice(Operation.Kind),
        required=False,
        help_text="The card operation that is in progress or about to start. While the checkout is `created` "
        "or `authorized`, no other action on it is possible until this field is gone.",
    )
    shares = Computed(
        lambda checkout: checkout.share_parts or None,
        SharesOut(),
        required=False,
        help_text="How much the customer's mates have paid of their shares. `amount` and refunds do not "
        "depend on it.",
    )
    disputes = fields.List(
        child=DisputeOut(),
        source="dispute_parts",
        allow_empty=False,
        required=False,
        help_text="The payers' disputes, oldest first: a payer has asked their bank for the money back. "
        "While a dispute is open, the checkout cannot be refunded. After a lost dispute, a refund returns "
        "only the amount that the dispute did not take.",
    )

    # For each field, the statuses in which it is included. ALWAYS lists the statuses in which the field is
    # always included. SOMETIMES lists the statuses in which it is included only if it has a value.
    ALWAYS = {
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
    SOMETIMES = {
        "authorized_at": (Status.VOIDED,),
        "capture_before": (Status.VOIDED,),
        "refunds": (Status.CAPTURED,),
        "pending_operation": tuple(Status),
        "shares": tuple(Status),
        "disputes": tuple(Status),
    }


class CheckoutListOut(Out):
    """One page of the list of checkouts."""

    checkouts = fields.List(
        child=CheckoutOut(),
        max_length=200,
        help_text="Newest first. With `sort=updated_at`, the oldest change comes first.",
    )
    next_cursor = fields.Text(
        maximum=500,
        allow_null=True,
        help_text="Send it as `cursor` for the next page. Null on the last page.",
    )
