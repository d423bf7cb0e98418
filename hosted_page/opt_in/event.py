"""Builds the data of the event `marketing.opted_in` (rules opt_in.*)."""

from functools import partial
from typing import Any

from rest_framework import serializers as drf

from checkout.api.common_fields import CHECKOUT_UUID, MERCHANT_ORDER_ID
from checkout.models import Customer
from config.lib.api import fields
from config.lib.api.responses import OpenChoice, Out, Time
from hosted_page.models import OptIn
from hosted_page.payment_target import PaymentTarget

TICKED = partial(drf.BooleanField, allow_null=True)


class OptInOrderOut(Out):
    """The order, or the friend's share of it."""

    merchant_order_id = MERCHANT_ORDER_ID()
    checkout_uuid = CHECKOUT_UUID()
    payment_request_uuid = drf.UUIDField(
        allow_null=True, help_text="The id of the mate's share. Null for the lead."
    )


class OptInCustomerOut(Out):
    """The person."""

    name = fields.Text(
        allow_null=True, help_text="As known when the box was ticked. Null if it was not known."
    )
    email = drf.EmailField(help_text="Entered with this tick. The newest is current.")
    phone = fields.Text(
        maximum=16, allow_null=True, help_text="In E.164. Null unless the customer has verified it."
    )


class OptInOut(Out):
    """The person's consent."""

    email_marketing = TICKED(help_text="true if there is an address to write to, otherwise null.")
    sms_marketing = TICKED(help_text="true if there is a number to write to, otherwise null.")
    opted_in_at = Time(help_text="When the box was ticked.")
    placement = OpenChoice(OptIn.Placement, help_text="Where the box was shown.")
    text_version = drf.IntegerField(min_value=1, help_text="The version of the wording that was shown.")


class OptedInDataOut(Out):
    """The data of `marketing.opted_in`."""

    customer_id = drf.UUIDField(
        help_text="The person's id: stable at your shop, different at other merchants."
    )
    subject = OpenChoice(
        ("lead", "friend"), help_text="`lead` placed the order. `friend` pays a share of it."
    )
    order = OptInOrderOut(help_text="The order on which the box was ticked.")
    customer = OptInCustomerOut(help_text="The person to write to.")
    opt_in = OptInOut(help_text="What the person agreed to.")


def event_data(
    target: PaymentTarget, opt_in: OptIn, person: Customer | None, name: str, *, verified: Customer | None
) -> dict[str, Any]:
    """Return the data of the event.

    `verified` is the person if they entered a code during this visit, otherwise None. The data contains a
    number only if `verified` is given.
    """
    return OptedInDataOut.write(
        {
            "customer_id": opt_in.person_id,
            "subject": "friend" if target.share else "lead",
            "order": {
                "merchant_order_id": target.checkout.merchant_order_id,
                "checkout_uuid": target.checkout.pk,
                "payment_request_uuid": target.share.pk if target.share else None,
            },
            "customer": {
                "name": (person.name if person else name) or None,
                "email": opt_in.email,
                "phone": verified.phone if verified else None,
            },
            "opt_in": _consent_fields(opt_in, is_proven=verified is not None),
        }
    )


def _consent_fields(opt_in: OptIn, *, is_proven: bool) -> dict[str, Any]:
    return {
        "email_marketing": True,
        "sms_marketing": True if is_proven else None,
        "opted_in_at": opt_in.opted_in_at,
        "placement": opt_in.placement,
        "text_version": opt_in.text.version,
    }
