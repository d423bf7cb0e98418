"""The helper API (INTERFACE.md 7): what a customer and the time do, for tests without a browser."""

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from checkout import deadlines, finishing, tasks, transitions
from checkout.api import presentation
from checkout.models import Checkout, Customer
from checkout.states import Status
from checkout.transitions import OperationInProgress, Paid
from config.lib import fields
from config.lib.deadline import Deadline
from hosted_page import sign_in
from payments import operations
from payments.cause import caller_of, cause_of
from payments.models import Merchant, Operation, Payment
from payments.provider import CardUse, Verdict
from payments.providers.sandbox import bank, line
from webhooks import outbox

PATIENCE = 5.0  # seconds for the bank to say what came of a challenge


class CardDeclined(Exception):
    """The test card said no."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PayIn(drf.Serializer[Any]):
    """The card and the phone of a customer."""

    card = fields.Text(default="4242424242424242", most=19)
    phone = fields.Text(default="+447700900123", most=40)
    challenge = drf.ChoiceField(["pass", "fail"], default="pass")


class AdvanceIn(drf.Serializer[Any]):
    """How far the deadlines come nearer."""

    seconds = fields.Integer(least=1, most=864_000)


class Pay(APIView):
    """Pays as the customer does on the page."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        asked = PayIn(data=request.data)
        asked.is_valid(raise_exception=True)
        merchant = caller_of(request).merchant
        checkout = Checkout.objects.get(pk=checkout_uuid, merchant=merchant)
        lead = _customer(asked.validated_data["phone"], merchant)
        try:
            token = line.ask("tokenise", subject=checkout.pk, number=asked.validated_data["card"])
        except bank.UnknownCard:
            raise drf.ValidationError({"card": ["Must be a test card, such as 4242424242424242."]}) from None
        paid = transitions.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=cause_of(request))
        if paid.verdict == Verdict.NEEDS_ACTION:
            is_confirmed = asked.validated_data["challenge"] == "pass"
            paid = _answer_challenge(checkout, is_confirmed=is_confirmed)
        if paid.verdict == Verdict.DECLINED:
            raise CardDeclined(paid.reason)
        return Response({"data": presentation.read(merchant, checkout_uuid)})


def _answer_challenge(checkout: Checkout, *, is_confirmed: bool) -> Paid:
    """Do what the payer does on their bank's page, and come back from it."""
    found = operations.open_operation(checkout.pk)
    if found is None:
        raise OperationInProgress
    line.ask("answer_challenge", key=found.pk, is_confirmed=is_confirmed)
    patience = Deadline.after(PATIENCE)
    while patience.left():
        finishing.finish_now(checkout.pk)  # unless the pump is at it
        found.refresh_from_db()
        if found.ended_at is not None:
            is_confirmed = found.state == Operation.State.SUCCEEDED
            return Paid(Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED, found.reason)
        time.sleep(0.1)
    raise OperationInProgress


def _customer(phone: str, merchant: Merchant) -> Customer:
    try:
        number = sign_in.parse_phone(phone, merchant)
    except sign_in.InvalidPhone:
        raise drf.ValidationError({"phone": ["Must be a mobile number, such as +447700900123."]}) from None
    return Customer.objects.get_or_create(phone=number)[0]


class Advance(APIView):
    """Brings everything that is still due of a checkout nearer, and runs its pumps."""

    scopes = {"POST": "checkouts:write"}

    def post(self, request: Request, checkout_uuid: UUID) -> Response:
        asked = AdvanceIn(data=request.data)
        asked.is_valid(raise_exception=True)
        merchant = caller_of(request).merchant
        Checkout.objects.only("pk").get(pk=checkout_uuid, merchant=merchant)
        tasks.finish_operations_of(checkout_uuid)  # what is due now, so that what follows it comes nearer too
        _hasten(merchant, checkout_uuid, asked.validated_data["seconds"])
        deadlines.keep_of(checkout_uuid)
        tasks.finish_operations_of(checkout_uuid)
        return Response({"data": presentation.read(merchant, checkout_uuid)})


def _hasten(merchant: Merchant, checkout_uuid: UUID, seconds: int) -> None:
    """What has happened never moves."""
    sooner = timedelta(seconds=seconds)
    with transaction.atomic():
        checkout = Checkout.objects.locked(checkout_uuid, merchant)
        if operations.open_operation(checkout.pk) is not None:
            raise OperationInProgress
        if checkout.status == Status.CREATED:
            checkout.payable_until -= sooner
            if checkout.expires_at is not None:
                checkout.expires_at -= sooner
        elif checkout.status == Status.AUTHORIZED and checkout.capture_before is not None:
            checkout.capture_before -= sooner
        checkout.save(update_fields=["payable_until", "expires_at", "capture_before", "updated_at"])
        payments = list(Payment.objects.filter(checkout_uuid=checkout.pk).values_list("pk", flat=True))
        due = Operation.objects.filter(payment__in=payments, ended_at=None, lease_token=None)
        due.update(next_attempt_at=F("next_attempt_at") - sooner)
        outbox.hasten(checkout.pk, sooner)
    line.ask("hasten", payments=payments, seconds=seconds)
