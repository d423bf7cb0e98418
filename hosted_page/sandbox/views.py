"""Views of the helper API (rules sandbox.*): actions of payers and their banks, and the passage of time."""

from typing import Any
from uuid import UUID

from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response

from checkout.api import detailed_reads
from checkout.api.responses import CheckoutOut
from checkout.models import Checkout, PaymentRequest
from checkout.split.split_amounts import MAX_PEOPLE
from config.lib.api import fields
from config.lib.api.view import ApiView
from hosted_page.models import OptIn
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget
from hosted_page.sandbox import advancing, dispute_decisions, paying, responses
from hosted_page.steps.split_form import MAX_SHORT_NAME
from payments import money
from payments.cause import caller_of, cause_of
from payments.models import Dispute, Merchant

MAX_CARD = 40  # characters of a card number with its spaces


class ShareIn(fields.Body):
    """A share: the mate's name and the amount."""

    name = fields.Text(default="", maximum=60, help_text="The mate's name, as the lead would write it.")
    amount = fields.MinorUnits(
        minimum=1, maximum=money.MAXIMUM, help_text="The amount of the share in minor units."
    )


class PayIn(fields.Body):
    """The card, the phone number and the name of a customer, and the shares of mates."""

    card = fields.Text(
        default="4242424242424242",
        maximum=MAX_CARD,
        help_text="A test card. Spaces in the number are ignored.",
    )
    phone = fields.Text(default="+447700900123", maximum=40, help_text="The customer's mobile number.")
    challenge = fields.OneOf(("pass", "fail"), default="pass", help_text="How a 3-D Secure challenge ends.")
    name = fields.Text(
        required=False,
        maximum=MAX_SHORT_NAME,
        help_text="The customer's name, which mates see. With `shares`, if you send no name and the service "
        "knows no name, it is Lea.",
    )
    shares = fields.List(
        child=ShareIn(),
        allow_empty=False,
        max_length=MAX_PEOPLE - 1,
        required=False,
        help_text="The shares that mates are asked to pay. The lead bears the rest.",
    )


class SplitIn(fields.Body):
    """The phone number and the name of a customer who lets the mates pledge first, and the shares of mates."""

    phone = fields.Text(default="+447700900123", maximum=40, help_text="The customer's mobile number.")
    name = fields.Text(
        required=False,
        maximum=MAX_SHORT_NAME,
        help_text="The customer's name, which mates see. If you send no name and the service knows no name, it is Lea.",
    )
    shares = fields.List(
        child=ShareIn(),
        allow_empty=False,
        max_length=MAX_PEOPLE - 1,
        help_text="The shares that mates are asked for. The lead bears the rest.",
    )


class PayShareIn(fields.Body):
    """The share that a mate pays or pledges, and the card."""

    payment_request_uuid = fields.Uuid(required=False, help_text="The share. Without it, the first open one.")
    card = fields.Text(
        required=False,
        maximum=MAX_CARD,
        help_text="A test card. Spaces in the number are ignored. Without a card, the service uses "
        "5555555555554444, or 4242424242424242 if the lead has paid with that one.",
    )


class OptInIn(fields.Body):
    """A tick of the opt-in box."""

    email = fields.Text(
        maximum=consent.MAX_EMAIL, format="email", help_text="Entered with this tick. The newest is current."
    )
    placement = fields.OneOf(
        tuple(OptIn.Placement.values), required=False, help_text="Where the box was shown."
    )
    subject = fields.OneOf(
        ("lead", "friend"), required=False, help_text="`lead` placed the order. `friend` pays a share of it."
    )
    payment_request_uuid = fields.Uuid(required=False, help_text="The id of the mate's share.")

    def validate_email(self, email: str) -> str:
        try:
            return consent.parse_email(email)
        except consent.InvalidEmail:
            raise drf.ValidationError("Must be an e-mail address, such as lea@example.com.") from None


class DecideDisputeIn(fields.Body):
    """The bank's decision about a dispute."""

    result = fields.OneOf(
        (Dispute.Status.WON, Dispute.Status.LOST),
        help_text="`won`: you keep the money. `lost`: the payer keeps it.",
    )
    dispute_uuid = fields.Uuid(required=False, help_text="The dispute. Without it, the oldest open one.")


class AdvanceIn(fields.Body):
    """The time that passes."""

    seconds = fields.Integer(minimum=1, maximum=864_000, help_text="How many seconds pass.")


class Pay(ApiView):
    """Endpoint that pays an order, as a customer does on the page."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(PayIn)
        merchant = caller_of(request).merchant
        checkout = _checkout_of_merchant(merchant, checkout_uuid)
        paying.pay(checkout, body, cause=cause_of(request))
        paid = detailed_reads.read_checkout(merchant, checkout_uuid)
        return Response({"data": responses.SplitCheckoutOut.write(paid)})


def _checkout_of_merchant(merchant: Merchant, checkout_uuid: UUID) -> Checkout:
    return Checkout.objects.select_related("merchant", "lead").get(pk=checkout_uuid, merchant=merchant)


class Split(ApiView):
    """Endpoint that splits an order so that the mates pledge first, as a customer can on the page."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(SplitIn)
        merchant = caller_of(request).merchant
        paying.split(_checkout_of_merchant(merchant, checkout_uuid), body)
        split = detailed_reads.read_checkout(merchant, checkout_uuid)
        return Response({"data": responses.SplitCheckoutOut.write(split)})


class PledgeShare(ApiView):
    """Endpoint that pledges a share, as a mate does at the pay link before the order is paid."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(PayShareIn)
        checkout = _checkout_of_merchant(caller_of(request).merchant, checkout_uuid)
        share = paying.pledge_share(checkout, body, cause=cause_of(request))
        return Response({"data": responses.ShareOut.write(share)})


class PayShare(ApiView):
    """Endpoint that pays a share, as a mate does at the pay link."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(PayShareIn)
        checkout = _checkout_of_merchant(caller_of(request).merchant, checkout_uuid)
        share = paying.pay_share(checkout, body, cause=cause_of(request))
        return Response({"data": responses.ShareOut.write(share)})


class TickOptIn(ApiView):
    """Endpoint that ticks the merchant's opt-in box as the lead, or as the mate who pays a share."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(OptInIn)
        checkout = _checkout_of_merchant(caller_of(request).merchant, checkout_uuid)
        event_uuid = _tick_opt_in(checkout, body)
        return Response({"data": responses.TickedOut.write({"event_id": event_uuid})})


def _tick_opt_in(checkout: Checkout, body: dict[str, Any]) -> UUID | None:
    share = _friends_share(checkout, body)
    default = OptIn.Placement.PAY_LINK if share else OptIn.Placement.SUCCESS_PAGE
    return consent.record_opt_in(
        PaymentTarget(checkout, share),
        person=share.mate if share else checkout.lead,
        email=body["email"],
        placement=body.get("placement", default),
        text=consent.wording(checkout.merchant),
    )


def _friends_share(checkout: Checkout, body: dict[str, Any]) -> PaymentRequest | None:
    """Return the friend's share, or the first share if no share is named. Return None for the lead."""
    share_uuid = body.get("payment_request_uuid")
    if body.get("subject", "friend" if share_uuid else "lead") == "lead":
        return None
    shares = checkout.payment_requests.select_related("mate").order_by("position")
    share = shares.filter(pk=share_uuid).first() if share_uuid else shares.first()
    if share is None:
        raise drf.ValidationError({"payment_request_uuid": ["Must be one of this checkout's shares."]})
    return share


class DecideDispute(ApiView):
    """Endpoint that lets the sandbox bank decide a dispute."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(DecideDisputeIn)
        merchant = caller_of(request).merchant
        dispute_decisions.decide_dispute(_checkout_of_merchant(merchant, checkout_uuid), body)
        return Response({"data": CheckoutOut.write(detailed_reads.read_checkout(merchant, checkout_uuid))})


class Advance(ApiView):
    """Endpoint that lets time pass for a checkout, and runs its pumps."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        body = self.body(AdvanceIn)
        merchant = caller_of(request).merchant
        advancing.advance(merchant, checkout_uuid, body["seconds"])
        return Response({"data": CheckoutOut.write(detailed_reads.read_checkout(merchant, checkout_uuid))})
