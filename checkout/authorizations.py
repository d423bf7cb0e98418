"""Authorizes a checkout: the service holds the checkout's amount on the lead's card.

An authorization has three phases. The service first commits the intent. It then calls the provider while no
transaction is open. Finally, it locks the checkout again and records the outcome.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction

from checkout import expiry, given_up_cards, outcomes
from checkout.models import Checkout, Customer, PaymentRequest
from checkout.states import OperationInProgress, StateConflict, Status
from config.lib.bulkhead import Slot
from config.lib.deadline import Deadline
from payments import bulkheads, open_operations, operations, operator_stops
from payments.cause import Cause
from payments.models import Operation, Payment
from payments.provider import CardUse, Verdict

Kind: TypeAlias = Operation.Kind
State: TypeAlias = Operation.State


class NotPayable(StateConflict):
    """The checkout is already paid, expired or cancelled."""


class NotTheLead(Exception):
    """This person is no longer the lead, because another person has signed in on the order's page (rule pay.lead)."""


@dataclass(frozen=True)
class PaymentResult:
    """Result of an attempt to pay. If the verdict is NEEDS_ACTION, the payer must confirm at `action_url`."""

    verdict: Verdict
    reason: str = ""
    action_url: str = ""


def authorize(
    checkout_uuid: UUID,
    *,
    card: CardUse,
    lead: Customer | None,
    cause: Cause,
    language: str = "",
    admit: Callable[[], None] = lambda: None,
) -> PaymentResult:
    """Hold the checkout's amount on the card: `created` becomes `authorized`.

    If the lead shares the cost, the page's `language` is stored for text messages to the lead (rule
    lead.language).

    An open authorization of another card is given up if it waits for the payer's confirmation, or if its bank
    has not answered for a minute. Otherwise, OperationInProgress is raised. `admit` is called in the
    transaction that begins the operation. If `admit` raises an exception, the transaction is rolled back.
    Raises NotPayable, NotTheLead, OperationInProgress, operator_stops.MerchantSuspended,
    operator_stops.AllStopped, bulkhead.Busy. Rules pay.held, pay.one_hold, pay.another_card.
    """

    def begin(slot: Slot) -> Operation:
        with transaction.atomic(durable=True):
            checkout = Checkout.objects.locked(checkout_uuid)
            payable = _check_payable(checkout, card.token, lead, checkout.locked_at)
            if payable:
                slot.take()
                admit()
                payment = new_payment(checkout, card, Payment.Kind.ORDER, of=checkout)
                operation = operations.begin(payment, Kind.AUTHORIZE, now=checkout.locked_at, cause=cause)
                _save_payer(checkout, lead, language)
        if not payable:
            raise NotPayable(checkout.status)
        return operation

    return hold(begin)


def _save_payer(checkout: Checkout, lead: Customer | None, language: str) -> None:
    """Store the lead if the checkout has no lead yet. If the cost is split, also store the page's language."""
    facts: dict[str, Any] = {}
    if lead is not None and checkout.lead_id is None:
        facts["lead"] = lead
    if checkout.has_mates and checkout.language != language:
        facts["language"] = language
    if facts:
        checkout.note(**facts)


def hold(begin: Callable[[Slot], Operation]) -> PaymentResult:
    """Hold money on a card in three phases.

    First, `begin` takes a slot of the bulkhead and commits the intent. The provider is called next. After the
    call, the checkout is locked again and the outcome is recorded. Raises bulkhead.Busy, and the exceptions
    that `begin` raises.
    """
    deadline = Deadline.after(operations.PATIENCE)
    with bulkheads.PAYERS.slot() as slot:
        operation = slot.begin(begin)
        outcome = operations.perform(operation, deadline=deadline)
        checkout_uuid, lease = operation.payment.checkout_uuid, operation.lease_token
        recorded = outcomes.record_outcome(checkout_uuid, operation.pk, outcome, lease=lease).operation
    if recorded.state == State.SUCCEEDED:
        return PaymentResult(Verdict.SUCCEEDED)
    if recorded.state in (State.DECLINED, State.FAILED):
        return PaymentResult(Verdict.DECLINED, recorded.reason)
    return PaymentResult(outcome.verdict, recorded.reason, recorded.action_url)


def _check_payable(checkout: Checkout, card_token: str, lead: Customer | None, now: datetime) -> bool:
    """Return whether the checkout can be paid. If its deadline has passed, it expires first.

    An open authorization of another card is given up if `given_up_cards.give_up_for_another_card` allows it. Raises
    NotTheLead, OperationInProgress, operator_stops.MerchantSuspended, operator_stops.AllStopped.
    """
    expiry.expire_if_due(checkout, now)
    if checkout.status != Status.CREATED:
        return False
    if checkout.is_led_by_another(lead.pk if lead else None):
        raise NotTheLead
    operator_stops.check(checkout.merchant)
    found = open_operations.open_operation(checkout.pk)
    if found is not None and (
        found.payment.card_token == card_token
        or not given_up_cards.give_up_for_another_card(checkout, found, now)
    ):
        raise OperationInProgress
    return True


def new_payment(
    checkout: Checkout, card: CardUse, kind: Payment.Kind, *, of: Checkout | PaymentRequest
) -> Payment:
    """Create the payment of one card for the whole checkout or for a mate's share.

    `of` is the checkout or the share. The lead's card pays for the whole checkout, even if the cost is split.
    Rule split.full_hold.
    """
    return Payment.objects.create(
        merchant_id=checkout.merchant_id,
        kind=kind,
        subject=of.pk,
        checkout_uuid=checkout.pk,
        amount=of.amount,
        currency=checkout.currency,
        provider_account=checkout.merchant.provider_account,
        card_token=card.token,
        return_url=card.return_url,
    )
