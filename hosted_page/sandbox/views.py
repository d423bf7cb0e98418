"""The helper API (rules sandbox.*): what a customer and the time do, for tests without a browser."""

import time
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response

from checkout import ending, finishing, sharing, splitting, transitions
from checkout.api import presentation
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.splitting import MAX_PEOPLE
from checkout.states import SHARE_PAID, ShareStatus, Status
from checkout.transitions import NotPayable, OperationInProgress, Paid
from config.lib import fields
from config.lib.deadline import Deadline
from config.lib.view import ApiView
from hosted_page.models import OptIn
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import codes
from payments import open_operations
from payments.cause import caller_of, cause_of
from payments.models import Merchant, Operation, Payment
from payments.provider import CardUse, Verdict
from payments.providers.sandbox import bank, client
from webhooks import outbox

MATES = ("+447700900456", "+447700900457")
PATIENCE = 5.0  # seconds for the bank to say what came of a challenge


class CardDeclined(Exception):
    """The test card said no."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ShareIn(drf.Serializer[Any]):
    """What a mate is asked for."""

    name = fields.Text(default="", maximum=60)
    amount = fields.Integer(minimum=1, maximum=99_999_999)


class PayIn(drf.Serializer[Any]):
    """The card and the phone of a customer."""

    card = fields.Text(default="4242424242424242", maximum=19)
    phone = fields.Text(default="+447700900123", maximum=40)
    challenge = drf.ChoiceField(["pass", "fail"], default="pass")
    shares = fields.List(child=ShareIn(), min_length=1, max_length=MAX_PEOPLE - 1, required=False)


class PayShareIn(drf.Serializer[Any]):
    """Which share a mate pays, and with which card."""

    payment_request_uuid = drf.UUIDField(required=False)
    card = fields.Text(default="5555555555554444", maximum=19)


class OptInIn(drf.Serializer[Any]):
    """A tick of the opt-in box."""

    email = fields.Text(maximum=consent.MAX_EMAIL)
    placement = drf.ChoiceField(OptIn.Placement.choices, required=False)
    subject = drf.ChoiceField(["lead", "friend"], required=False)
    payment_request_uuid = drf.UUIDField(required=False)

    def validate_email(self, email: str) -> str:
        try:
            return consent.parse_email(email)
        except consent.InvalidEmail:
            raise drf.ValidationError("Must be an e-mail address, such as lea@example.com.") from None


class AdvanceIn(drf.Serializer[Any]):
    """How far the deadlines come nearer."""

    seconds = fields.Integer(minimum=1, maximum=864_000)


class Pay(ApiView):
    """Pays as the customer does on the page."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        asked = PayIn(data=request.data)
        asked.is_valid(raise_exception=True)
        merchant = caller_of(request).merchant
        checkout = Checkout.objects.get(pk=checkout_uuid, merchant=merchant)
        lead = _customer(asked.validated_data["phone"], merchant)
        token = _token(checkout.pk, asked.validated_data["card"])
        if checkout.lead_id is not None or "shares" in asked.validated_data:
            _sign_in(checkout, lead)
        if "shares" in asked.validated_data:
            _split(checkout, asked.validated_data["shares"])
        paid = transitions.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=cause_of(request))
        if paid.verdict == Verdict.NEEDS_ACTION:
            is_confirmed = asked.validated_data["challenge"] == "pass"
            paid = _answer_challenge(checkout.pk, is_confirmed=is_confirmed)
        if paid.verdict == Verdict.DECLINED:
            raise CardDeclined(paid.reason)
        return Response({"data": presentation.read(merchant, checkout_uuid) | _requests(checkout_uuid)})


def _token(subject: UUID, number: str) -> str:
    try:
        token: str = client.ask("tokenise", subject=subject, number=number)
    except bank.UnknownCard:
        raise drf.ValidationError({"card": ["Must be a test card, such as 4242424242424242."]}) from None
    return token


def _sign_in(checkout: Checkout, lead: Customer) -> None:
    """Whoever signs in last pays, as on the page; what cannot be paid any more says so when it is tried."""
    if checkout.lead_id != lead.pk:
        with suppress(NotPayable, OperationInProgress):
            sharing.join(checkout.pk, lead)


def _split(checkout: Checkout, shares: list[dict[str, Any]]) -> None:
    try:
        splitting.left_for_lead(checkout.amount, [share["amount"] for share in shares])
        sharing.split(checkout.pk, [sharing.Share(**share) for share in shares])
    except splitting.DoesNotAddUp as wrong:
        words = f"The shares come to {wrong.excess} more than the amount. Lower one."
        raise drf.ValidationError({"shares": [words]}) from None


def _requests(checkout_uuid: UUID) -> dict[str, Any]:
    rows = PaymentRequest.objects.filter(checkout=checkout_uuid).order_by("position")
    requests = [
        {"payment_request_uuid": str(row.pk), "amount": row.amount, "status": row.status} for row in rows
    ]
    return {"payment_requests": requests} if requests else {}


class PayShare(ApiView):
    """Pays a share as a mate does on the pay link's page."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        asked = PayShareIn(data=request.data)
        asked.is_valid(raise_exception=True)
        merchant = caller_of(request).merchant
        checkout = Checkout.objects.get(pk=checkout_uuid, merchant=merchant)
        share = _open_share(checkout, asked.validated_data.get("payment_request_uuid"))
        card = CardUse(_token(share.pk, asked.validated_data["card"]))
        paid = sharing.pay(share.pk, card=card, mate=_mate(checkout), cause=cause_of(request))
        if paid.verdict == Verdict.NEEDS_ACTION:
            paid = _answer_challenge(share.pk, is_confirmed=True)
        if paid.verdict != Verdict.DECLINED:
            _await_end(share)
        if share.status not in SHARE_PAID:
            declined = Payment.objects.filter(subject=share.pk).latest("created_at")
            raise CardDeclined(declined.decline_reason)
        return Response({"data": {"payment_request_uuid": str(share.pk), "status": share.status}})


def _open_share(checkout: Checkout, share_uuid: UUID | None) -> PaymentRequest:
    open_ones = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    wanted = open_ones.filter(pk=share_uuid) if share_uuid else open_ones.order_by("position")
    share = wanted.first()
    if share is None:
        raise sharing.ShareNotOpen("")
    return share


def _mate(checkout: Checkout) -> Customer:
    """Somebody who is not the lead."""
    lead = checkout.lead.phone if checkout.lead else ""
    return Customer.objects.get_or_create(phone=next(phone for phone in MATES if phone != lead))[0]


def _await_end(share: PaymentRequest) -> None:
    patience = Deadline.after(PATIENCE)
    while patience.left():
        finishing.finish_all_of(share.checkout_id)  # unless the pump is at it
        share.refresh_from_db()
        if share.status != ShareStatus.PAYING:
            return
        time.sleep(0.1)
    raise OperationInProgress


def _answer_challenge(subject: UUID, *, is_confirmed: bool) -> Paid:
    """Do what the payer does on their bank's page, and come back from it."""
    found = open_operations.open_operation(subject)
    if found is None:
        raise OperationInProgress
    client.ask("answer_challenge", key=found.pk, is_confirmed=is_confirmed)
    patience = Deadline.after(PATIENCE)
    while patience.left():
        finishing.finish_now(subject)  # unless the pump is at it
        found.refresh_from_db()
        if found.ended_at is not None:
            is_confirmed = found.state == Operation.State.SUCCEEDED
            return Paid(Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED, found.reason)
        time.sleep(0.1)
    raise OperationInProgress


def _customer(phone: str, merchant: Merchant) -> Customer:
    try:
        number = codes.parse_phone(phone, merchant)
    except codes.InvalidPhone:
        raise drf.ValidationError({"phone": ["Must be a mobile number, such as +447700900123."]}) from None
    return Customer.objects.get_or_create(phone=number)[0]


class TickOptIn(ApiView):
    """Ticks the merchant's opt-in box as the lead, or as the friend who pays a share."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        asked = OptInIn(data=request.data)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        rows = Checkout.objects.select_related("merchant", "lead")
        checkout = rows.get(pk=checkout_uuid, merchant=caller_of(request).merchant)
        share = _friends_share(checkout, wanted)
        default = OptIn.Placement.PAY_LINK if share else OptIn.Placement.SUCCESS_PAGE
        event_uuid = consent.tick(
            PaymentTarget(checkout, share),
            person=share.mate if share else checkout.lead,
            email=wanted["email"],
            placement=wanted.get("placement", default),
            text=consent.wording(checkout.merchant),
        )
        return Response({"data": {"event_id": str(event_uuid) if event_uuid else None}})


def _friends_share(checkout: Checkout, wanted: dict[str, Any]) -> PaymentRequest | None:
    """The friend's share, the first one where none is named; None for the lead."""
    named = wanted.get("payment_request_uuid")
    if wanted.get("subject", "friend" if named else "lead") == "lead":
        return None
    shares = checkout.payment_requests.select_related("mate").order_by("position")
    share = shares.filter(pk=named).first() if named else shares.first()
    if share is None:
        raise drf.ValidationError({"payment_request_uuid": ["Must be one of this checkout's shares."]})
    return share


class Advance(ApiView):
    """Brings everything that is still due of a checkout nearer, and runs its pumps."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        asked = AdvanceIn(data=request.data)
        asked.is_valid(raise_exception=True)
        merchant = caller_of(request).merchant
        Checkout.objects.only("pk").get(pk=checkout_uuid, merchant=merchant)
        finishing.finish_all_of(checkout_uuid)  # what is due now, so that what follows it comes nearer too
        _advance(merchant, checkout_uuid, asked.validated_data["seconds"])
        ending.expire_one_if_due(checkout_uuid)
        for share in PaymentRequest.objects.filter(checkout=checkout_uuid, status=ShareStatus.OPEN):
            sharing.expire(share.pk)
        finishing.finish_all_of(checkout_uuid)
        return Response({"data": presentation.read(merchant, checkout_uuid)})


def _advance(merchant: Merchant, checkout_uuid: UUID, seconds: int) -> None:
    """What has happened never moves."""
    sooner = timedelta(seconds=seconds)
    with transaction.atomic():
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        if open_operations.open_operation(checkout.pk) is not None:
            raise OperationInProgress
        if checkout.status == Status.CREATED:
            checkout.payable_until -= sooner
            if checkout.expires_at is not None:
                checkout.expires_at -= sooner
        elif checkout.status == Status.AUTHORIZED and checkout.capture_before is not None:
            checkout.capture_before -= sooner
        checkout.save(update_fields=["payable_until", "expires_at", "capture_before", "updated_at"])
        links = checkout.payment_requests.filter(status__in=[ShareStatus.OPEN, ShareStatus.PAYING])
        links.update(expires_at=F("expires_at") - sooner, next_reminder_at=F("next_reminder_at") - sooner)
        payments = list(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", flat=True))
        due = Operation.objects.filter(payment__in=payments, ended_at=None, lease_token=None)
        due.update(next_attempt_at=F("next_attempt_at") - sooner)
        outbox.advance(checkout.pk, sooner)
    client.ask("advance", payments=payments, seconds=seconds)
