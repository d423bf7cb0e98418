"""Does what a customer does on the hosted page and the bank's page, without a browser: sign in, split, pay, confirm."""

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
from hosted_page.steps import codes, declines
from hosted_page.steps.phone import InvalidPhone, parse_phone
from hosted_page.steps.split_form import clean_short_name
from payments import open_operations
from payments.cause import Cause
from payments.models import Merchant, Operation, Payment
from payments.provider import CardUse, Verdict
from payments.providers.sandbox import bank, client

DEFAULT_LEAD_NAME = "Lea"  # default name of a lead who splits the order, because the page requires a name
MATE_PHONES = ("+447700900456", "+447700900457")
WAIT_SECONDS = 5.0  # how long to wait for the outcome of a challenge or of a share's payment

MATE_CARDS = ("5555555555554444", "4242424242424242")


class CardDeclined(Exception):
    """The test card was declined."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def pay(checkout: Checkout, body: dict[str, Any], *, cause: Cause) -> None:
    """Pay an order. Raises CardDeclined, NotPayable, OperationInProgress.

    `body` has `phone`, `card` and `challenge`, and optionally `name` and `shares`.
    """
    if checkout.status == Status.CREATED and open_operations.open_operation(checkout.pk) is not None:
        # On the page, a new card could replace a card that waits for the payer's confirmation. This call
        # refuses such an order.
        raise OperationInProgress
    lead = _customer_of_number(body["phone"], checkout.merchant)
    if "shares" in body and _has_open_links(checkout):
        raise drf.ValidationError({"shares": ["The checkout is split already. Leave the shares out."]})
    token = _card_token(checkout.pk, body["card"])
    if checkout.lead_id is not None or "shares" in body:
        _sign_in(checkout, lead)
    if "shares" in body:
        _split_order(checkout, body["shares"], lead)
    result = authorizations.authorize(checkout.pk, card=CardUse(token), lead=lead, cause=cause)
    _save_lead_name(
        lead, body.get("name") or (DEFAULT_LEAD_NAME if "shares" in body and not lead.name else "")
    )
    if result.verdict == Verdict.NEEDS_ACTION:
        result = _answer_challenge_of_order(checkout, is_confirmed=body["challenge"] == "pass")
    if result.verdict == Verdict.DECLINED:
        raise CardDeclined(result.reason)


def split(checkout: Checkout, body: dict[str, Any]) -> None:
    """Split an unpaid order, so that mates can pledge their shares.

    `body` has `phone` and `shares`, and optionally `name`. Raises NotPayable, OperationInProgress,
    mate_shares.TooLateToCollect.
    """
    lead = _customer_of_number(body["phone"], checkout.merchant)
    if checkout.lead_id != lead.pk:
        mate_shares.make_lead(checkout.pk, lead)
    _split_order(checkout, body["shares"], lead, everyone_first=True)
    _save_lead_name(lead, body.get("name") or ("" if lead.name else DEFAULT_LEAD_NAME))


def _has_open_links(checkout: Checkout) -> bool:
    return checkout.has_mates and checkout.payment_requests.exclude(status=ShareStatus.DRAFT).exists()


def pledge_share(checkout: Checkout, body: dict[str, Any], *, cause: Cause) -> PaymentRequest:
    """Pledge the named share, or the first open share, and wait for the outcome.

    Raises CardDeclined, ShareNotOpen.
    """
    if checkout.status != Status.CREATED:
        raise mate_shares.ShareNotOpen(checkout.status)
    share = _try_share(checkout, body, cause)
    if share.status != ShareStatus.PLEDGED:
        raise _refusal_of(share)
    return share


def pay_share(checkout: Checkout, body: dict[str, Any], *, cause: Cause) -> PaymentRequest:
    """Pay the named share, or the first open share, and wait for the outcome.

    Raises CardDeclined, ShareNotOpen.
    """
    if checkout.status == Status.CREATED:
        raise mate_shares.ShareNotOpen(checkout.status)
    share = _try_share(checkout, body, cause)
    if share.status not in SHARE_PAID:
        raise _refusal_of(share)
    return share


def _try_share(checkout: Checkout, body: dict[str, Any], cause: Cause) -> PaymentRequest:
    """Charge or hold a mate's card for a share. Return the share after the bank has approved or declined the card."""
    share = _open_share(checkout, body.get("payment_request_uuid"))
    card = CardUse(_card_token(share.pk, body.get("card") or _card_for_mate(checkout)))
    result = mate_shares.pay(share.pk, card=card, mate=_mate_customer(checkout), cause=cause)
    answered: PaymentResult | None = result
    if result.verdict == Verdict.NEEDS_ACTION:
        answered = _answer_challenge(share.pk, is_confirmed=True)
    if answered is not None and answered.verdict != Verdict.DECLINED:
        _wait_for_outcome(share)
    return share


def _refusal_of(share: PaymentRequest) -> CardDeclined | mate_shares.ShareNotOpen:
    """Return the reason why a share could not be paid: its card was declined, or the order has ended."""
    reason = Payment.objects.filter(subject=share.pk).latest("created_at").decline_reason
    was_declined = reason and reason not in declines.HIDDEN_REASONS
    return CardDeclined(reason) if was_declined else mate_shares.ShareNotOpen(share.status)


def _card_for_mate(checkout: Checkout) -> str:
    """Return the number of a test card that is approved and is not the lead's card."""
    leads_last4 = checkout.payment.card_last4 if checkout.payment else ""
    return next(number for number in MATE_CARDS if number[-4:] != leads_last4)


def _customer_of_number(phone: str, merchant: Merchant) -> Customer:
    try:
        number = parse_phone(phone, merchant)
    except InvalidPhone:
        raise drf.ValidationError({"phone": ["Must be a mobile number, such as +447700900123."]}) from None
    return codes.person_of(number)


def _card_token(subject: UUID, number: str) -> str:
    try:
        token: str = client.call_bank("tokenise", subject=subject, number="".join(number.split()))
    except bank.UnknownCard:
        raise drf.ValidationError({"card": ["Must be a test card, such as 4242424242424242."]}) from None
    return token


def _sign_in(checkout: Checkout, lead: Customer) -> None:
    """Make this person the lead, as a sign-in on the page does.

    If the order cannot be paid, its lead stays the same, and the caller's payment raises the error.
    """
    if checkout.lead_id != lead.pk:
        with suppress(NotPayable, OperationInProgress):
            mate_shares.make_lead(checkout.pk, lead)


def _save_lead_name(lead: Customer, name: str) -> None:
    if cleaned := clean_short_name(name):
        Customer.objects.filter(pk=lead.pk).update(name=cleaned)


def _split_order(
    checkout: Checkout, share_bodies: list[dict[str, Any]], lead: Customer, *, everyone_first: bool = False
) -> None:
    shares = [Share(**share_body) for share_body in share_bodies]
    try:
        split_amounts.leads_part(checkout.amount, [share.amount for share in shares])
        mate_shares.split(checkout.pk, shares, lead=lead.pk, everyone_first=everyone_first)
    except split_amounts.SharesExceedAmount as error:
        words = f"The shares come to {error.excess} more than the amount. Lower one."
        raise drf.ValidationError({"shares": [words]}) from None


def _open_share(checkout: Checkout, share_uuid: UUID | None) -> PaymentRequest:
    open_shares = checkout.payment_requests.filter(status=ShareStatus.OPEN)
    candidates = open_shares.filter(pk=share_uuid) if share_uuid else open_shares.order_by("position")
    share = candidates.first()
    if share is None:
        raise mate_shares.ShareNotOpen("")
    return share


def _mate_customer(checkout: Checkout) -> Customer:
    """Return a customer who is not the lead."""
    leads_phone = checkout.lead.phone if checkout.lead else ""
    return codes.person_of(next(phone for phone in MATE_PHONES if phone != leads_phone))


def _answer_challenge_of_order(checkout: Checkout, *, is_confirmed: bool) -> PaymentResult:
    """Answer the challenge for an order's payment. Raises NotPayable if the order has already ended."""
    result = _answer_challenge(checkout.pk, is_confirmed=is_confirmed)
    if result is not None:
        return result
    checkout.refresh_from_db()
    if checkout.status == Status.CREATED:  # another card has replaced this one, or its bank has declined it
        raise OperationInProgress
    raise NotPayable(checkout.status)


def _answer_challenge(subject: UUID, *, is_confirmed: bool) -> PaymentResult | None:
    """Answer the bank's challenge, as a payer does on the bank's page. Return the payment's outcome.

    Return None if no challenge is open any more. Raises OperationInProgress if the outcome is not known
    within WAIT_SECONDS.
    """
    operation = open_operations.open_operation(subject)
    if operation is None:
        return None
    client.call_bank("answer_challenge", key=operation.pk, is_confirmed=is_confirmed)
    deadline = Deadline.after(WAIT_SECONDS)
    while deadline.remaining():
        # While the pump has leased the operation, this call has no effect.
        operation_recovery.finish_for_payer(subject)
        operation.refresh_from_db()
        if operation.ended_at is not None:
            is_confirmed = operation.state == Operation.State.SUCCEEDED
            return PaymentResult(Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED, operation.reason)
        time.sleep(0.1)
    raise OperationInProgress


def _wait_for_outcome(share: PaymentRequest) -> None:
    deadline = Deadline.after(WAIT_SECONDS)
    while deadline.remaining():
        # While the pump has leased the operation, this call has no effect.
        operation_recovery.finish_due_operations(share.checkout_id)
        share.refresh_from_db()
        if share.status != ShareStatus.PAYING:
            return
        time.sleep(0.1)
    raise OperationInProgress
