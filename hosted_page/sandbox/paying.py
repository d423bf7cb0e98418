"""Actions of a customer on our page and the bank's page, without a browser: sign in, split, pay, confirm."""

import time
from contextlib import suppress
from typing import Any
from uuid import UUID

from rest_framework import serializers as drf

from checkout import authorizations, mate_shares, operation_recovery
from checkout.authorizations import NotPayable, PaymentResult
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.split import split_amounts
from checkout.split.share_rows import Share
from checkout.states import SHARE_PAID, OperationInProgress, ShareStatus, Status
from config.lib.deadline import Deadline
from hosted_page.steps import codes
from hosted_page.steps.phone import InvalidPhone, parse_phone
from hosted_page.steps.split_form import clean_short_name
from payments import open_operations
from payments.cause import Cause
from payments.models import Merchant, Operation, Payment
from payments.provider import CardUse, Verdict
from payments.providers.sandbox import bank, client

DEFAULT_LEAD_NAME = "Lea"  # default name of a lead who splits the order, because the page requires a name
MATES = ("+447700900456", "+447700900457")
WAIT_SECONDS = 5.0  # seconds to wait for the outcome of a challenge or of a share's payment

MATES_CARDS = ("5555555555554444", "4242424242424242")


class CardDeclined(Exception):
    """The test card was declined."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def pay(checkout: Checkout, wanted: dict[str, Any], *, cause: Cause) -> None:
    """Pay an order. `wanted` has `phone`, `card`, `name`, `shares` and `challenge`. Raises CardDeclined."""
    lead = _customer_of_number(wanted["phone"], checkout.merchant)
    if "shares" in wanted and _has_open_links(checkout):
        raise drf.ValidationError({"shares": ["The checkout is split already. Leave the shares out."]})
    token = _card_token(checkout.pk, wanted["card"])
    if checkout.lead_id is not None or "shares" in wanted:
        _sign_in(checkout, lead)
    if "shares" in wanted:
        _split_order(checkout, wanted["shares"], lead)
    paid = authorizations.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=cause)
    _save_lead_name(
        lead, wanted.get("name") or (DEFAULT_LEAD_NAME if "shares" in wanted and not lead.name else "")
    )
    if paid.verdict == Verdict.NEEDS_ACTION:
        paid = _answer_challenge(checkout.pk, is_confirmed=wanted["challenge"] == "pass")
    if paid.verdict == Verdict.DECLINED:
        raise CardDeclined(paid.reason)


def split(checkout: Checkout, wanted: dict[str, Any]) -> None:
    """Split an unpaid order, so that mates can pledge. `wanted` has `phone`, `name` and `shares`.

    Raises NotPayable, OperationInProgress, mate_shares.TooLateToCollect.
    """
    lead = _customer_of_number(wanted["phone"], checkout.merchant)
    if checkout.lead_id != lead.pk:
        mate_shares.make_lead(checkout.pk, lead)
    _split_order(checkout, wanted["shares"], lead, everyone_first=True)
    _save_lead_name(lead, wanted.get("name") or ("" if lead.name else DEFAULT_LEAD_NAME))


def _has_open_links(checkout: Checkout) -> bool:
    return checkout.has_mates and checkout.payment_requests.exclude(status=ShareStatus.DRAFT).exists()


def pledge_share(checkout: Checkout, wanted: dict[str, Any], *, cause: Cause) -> PaymentRequest:
    """Pledge the named share, or the first open one, and wait for the outcome.

    Raises CardDeclined, ShareNotOpen.
    """
    if checkout.status != Status.CREATED:
        raise mate_shares.ShareNotOpen(checkout.status)
    share = _try_share(checkout, wanted, cause)
    if share.status != ShareStatus.PLEDGED:
        raise _decline_of(share)
    return share


def pay_share(checkout: Checkout, wanted: dict[str, Any], *, cause: Cause) -> PaymentRequest:
    """Pay the named share, or the first open one, and wait for the outcome.

    Raises CardDeclined, ShareNotOpen.
    """
    if checkout.status == Status.CREATED:
        raise mate_shares.ShareNotOpen(checkout.status)
    share = _try_share(checkout, wanted, cause)
    if share.status not in SHARE_PAID:
        raise _decline_of(share)
    return share


def _try_share(checkout: Checkout, wanted: dict[str, Any], cause: Cause) -> PaymentRequest:
    """Let a mate's card be asked for a share. Return the share once the card has answered."""
    share = _open_share(checkout, wanted.get("payment_request_uuid"))
    card = CardUse(_card_token(share.pk, wanted.get("card") or _card_for_mate(checkout)))
    paid = mate_shares.pay(share.pk, card=card, mate=_mate_customer(checkout), cause=cause)
    if paid.verdict == Verdict.NEEDS_ACTION:
        paid = _answer_challenge(share.pk, is_confirmed=True)
    if paid.verdict != Verdict.DECLINED:
        _wait_for_outcome(share)
    return share


def _decline_of(share: PaymentRequest) -> CardDeclined:
    return CardDeclined(Payment.objects.filter(subject=share.pk).latest("created_at").decline_reason)


def _card_for_mate(checkout: Checkout) -> str:
    """Return the number of a test card that is approved and is not the lead's card."""
    used = checkout.payment.card_last4 if checkout.payment else ""
    return next(number for number in MATES_CARDS if number[-4:] != used)


def _customer_of_number(phone: str, merchant: Merchant) -> Customer:
    try:
        number = parse_phone(phone, merchant)
    except InvalidPhone:
        raise drf.ValidationError({"phone": ["Must be a mobile number, such as +447700900123."]}) from None
    return codes.person_of(number)


def _card_token(subject: UUID, number: str) -> str:
    try:
        token: str = client.call_bank("tokenise", subject=subject, number=number)
    except bank.UnknownCard:
        raise drf.ValidationError({"card": ["Must be a test card, such as 4242424242424242."]}) from None
    return token


def _sign_in(checkout: Checkout, lead: Customer) -> None:
    """Make this person the lead, as a sign-in on the page does.

    If the order cannot be paid, do nothing. The payment that follows then refuses the order.
    """
    if checkout.lead_id != lead.pk:
        with suppress(NotPayable, OperationInProgress):
            mate_shares.make_lead(checkout.pk, lead)


def _save_lead_name(lead: Customer, name: str) -> None:
    """Save the lead's name, if one is given."""
    if cleaned := clean_short_name(name):
        Customer.objects.filter(pk=lead.pk).update(name=cleaned)


def _split_order(
    checkout: Checkout, shares: list[dict[str, Any]], lead: Customer, *, everyone_first: bool = False
) -> None:
    wanted = [Share(**share) for share in shares]
    try:
        split_amounts.leads_part(checkout.amount, [share.amount for share in wanted])
        mate_shares.split(checkout.pk, wanted, lead=lead.pk, everyone_first=everyone_first)
    except split_amounts.SharesExceedAmount as wrong:
        words = f"The shares come to {wrong.excess} more than the amount. Lower one."
        raise drf.ValidationError({"shares": [words]}) from None


def _open_share(checkout: Checkout, share_uuid: UUID | None) -> PaymentRequest:
    open_ones = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    wanted = open_ones.filter(pk=share_uuid) if share_uuid else open_ones.order_by("position")
    share = wanted.first()
    if share is None:
        raise mate_shares.ShareNotOpen("")
    return share


def _mate_customer(checkout: Checkout) -> Customer:
    """Return a customer who is not the lead."""
    lead = checkout.lead.phone if checkout.lead else ""
    return codes.person_of(next(phone for phone in MATES if phone != lead))


def _answer_challenge(subject: UUID, *, is_confirmed: bool) -> PaymentResult:
    """Answer the bank's challenge, as a payer does on the bank's page. Return the outcome.

    Raises OperationInProgress if the outcome is not known in time.
    """
    found = open_operations.open_operation(subject)
    if found is None:
        raise OperationInProgress
    client.call_bank("answer_challenge", key=found.pk, is_confirmed=is_confirmed)
    patience = Deadline.after(WAIT_SECONDS)
    while patience.remaining():
        # This call has no effect while the pump has leased the operation.
        operation_recovery.finish_for_payer(subject)
        found.refresh_from_db()
        if found.ended_at is not None:
            is_confirmed = found.state == Operation.State.SUCCEEDED
            return PaymentResult(Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED, found.reason)
        time.sleep(0.1)
    raise OperationInProgress


def _wait_for_outcome(share: PaymentRequest) -> None:
    patience = Deadline.after(WAIT_SECONDS)
    while patience.remaining():
        # This call has no effect while the pump has leased the operation.
        operation_recovery.finish_due_operations(share.checkout_id)
        share.refresh_from_db()
        if share.status != ShareStatus.PAYING:
            return
        time.sleep(0.1)
    raise OperationInProgress
