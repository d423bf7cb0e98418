"""Stripe's books as ours are compared with: records of what each PaymentIntent and refund says.

An intent or refund without a payment of ours in that account makes no record: another system may use the account.
Rule provider.accounts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid5

import stripe
import structlog
from django.db.models import QuerySet
from stripe.params import EventListParams, PaymentIntentListParams

from payments.models import FormerAccount, Merchant, Operation, Payment
from payments.provider import PaymentRecord, ProviderUnreachable, Record, Verdict
from payments.providers.stripe import amounts, client, intents, refunds

log = structlog.get_logger("payments.providers.stripe")
T = TypeVar("T", bound=stripe.StripeObject)
Kind = Operation.Kind
EVENTS = (
    *("payment_intent.amount_capturable_updated", "payment_intent.canceled", "payment_intent.payment_failed"),
    *("payment_intent.processing", "payment_intent.requires_action", "payment_intent.succeeded"),
    *("refund.created", "refund.failed", "refund.updated"),
    *("charge.dispute.created", "charge.dispute.closed", "charge.dispute.updated"),
    *("charge.dispute.funds_reinstated", "charge.dispute.funds_withdrawn"),
)
NAMES = ("payment", "merchant", "subject")  # in the metadata of a PaymentIntent
_OUTSIDE = UUID("6d1bd7a4-2e4d-4f4f-9f7e-6f2a4d6d7a10")  # the name space of ids for acts that we did not make


def records(since: datetime) -> Iterator[Record]:
    """Yield what has become of every PaymentIntent and refund that has changed since. Raises ProviderUnreachable."""
    for account in accounts():
        seen = set()
        for event in _events(account, since, "payment_intent", "refund"):
            thing = event.data.object
            if thing.id not in seen:  # the newest event comes first
                seen.add(thing.id)
                yield from of_thing(thing, account)


def refunds_of(payment: Payment) -> list[Record]:
    """Return every refund of a payment, also those that others made. Raises ProviderUnreachable."""
    if not payment.provider_reference:
        return []
    asks = client.of(payment.provider_account, seconds=client.ASK_SECONDS)
    try:
        found = list(refunds.of_payment(payment, asks))
    except stripe.StripeError as error:
        raise ProviderUnreachable from error
    return [record for refund in found for record in _of_refund(refund, payment)]


def payments(since: datetime) -> Iterator[PaymentRecord]:
    """Yield every PaymentIntent made since that names a payment of ours. Raises ProviderUnreachable."""
    asked: PaymentIntentListParams = {
        "created": {"gte": int(since.timestamp())},
        "limit": 100,
        "expand": ["data.latest_charge"],
    }
    for account in accounts():
        for intent in _intents(account, asked):
            payment, merchant, subject = (_uuid(_named(intent, name)) for name in NAMES)
            if payment and merchant and subject:
                yield _payment(intent, account, payment, merchant, subject)


def _intents(account: str, asked: PaymentIntentListParams) -> Iterator[stripe.PaymentIntent]:
    return pages(account, lambda asks: asks.v1.payment_intents.list(asked))


def names(payment: Payment) -> dict[str, str]:
    """Return what a PaymentIntent keeps in its metadata, so that a payment lost here can be rebuilt from it."""
    values = (payment.pk, payment.merchant_id, payment.subject)
    return dict(zip(NAMES, map(str, values), strict=True))


def _named(intent: stripe.PaymentIntent, name: str) -> str:
    return intent.metadata[name] if intent.metadata and name in intent.metadata else ""


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _payment(
    intent: stripe.PaymentIntent, account: str, payment: UUID, merchant: UUID, subject: UUID
) -> PaymentRecord:
    return PaymentRecord(
        payment=payment,
        account=merchant,
        subject=subject,
        amount=amounts.ours(intent.amount, intent.currency),
        currency=intent.currency.upper(),
        is_moved=intents.outcome(Kind.AUTHORIZE, intent).verdict == Verdict.SUCCEEDED,
        reference=intent.id,
        place=account,
        card=intents.card(intent),
    )


def disputed(since: datetime) -> Iterator[UUID]:
    """Yield our ids of the payments with a dispute that has changed since. Raises ProviderUnreachable."""
    for account in accounts():
        for event in _events(account, since, "charge.dispute"):
            payment = payment_of(event.data.object, account)
            if payment is not None:
                yield payment.pk


def accounts() -> list[str]:
    """Return the accounts that merchants have or had, "" for the platform's own: payments stay where they were made."""
    former = FormerAccount.objects.values_list("provider_account", flat=True)
    return list(current_accounts().union(former))


def current_accounts() -> QuerySet[Merchant, str]:
    """Return the accounts that payments to come are made in, "" for the platform's own."""
    return Merchant.objects.values_list("provider_account", flat=True).distinct()


def _events(account: str, since: datetime, *kinds: str) -> Iterator[stripe.Event]:
    types = [name for name in EVENTS if name.startswith(kinds)]
    asked: EventListParams = {"created": {"gte": int(since.timestamp())}, "types": types, "limit": 100}
    yield from pages(account, lambda asks: asks.v1.events.list(asked))


def pages(account: str, ask: Callable[[stripe.StripeClient], stripe.ListObject[T]]) -> Iterator[T]:
    """Yield all pages of a list of an account's. Raises ProviderUnreachable.

    An account that we may no longer read yields nothing: what it lacks is reported, and the others are still read.
    """
    try:
        asks = client.of(account, seconds=client.BOOKS_SECONDS)
        page = client.patiently(lambda: ask(asks))
        while not page.is_empty:
            yield from page
            page = client.patiently(page.next_page)
    except stripe.PermissionError as error:
        if not account:
            raise ProviderUnreachable from error
        log.error("stripe account not readable", account=account, code=error.code, request=error.request_id)
    except stripe.StripeError as error:
        raise ProviderUnreachable from error


def payment_of(thing: Any, account: str) -> Payment | None:
    """Return our payment of a PaymentIntent, or of a refund or dispute that names one, None if it is not ours."""
    intent = thing.id if thing.object == "payment_intent" else getattr(thing, "payment_intent", None)
    found = Payment.objects.filter(provider_reference=intent or "", provider_account=account)
    return found.first() if intent else None


def of_thing(thing: Any, account: str, *, may_ask: bool = True) -> Iterable[Record]:
    """Return the records that a PaymentIntent or a refund makes, none if it is not of a payment of ours.

    Without `may_ask` a refund of which Stripe would have to be asked more makes none. Raises ProviderUnreachable.
    """
    payment = payment_of(thing, account)
    if payment is None:
        return []
    return _of_refund(thing, payment, may_ask) if thing.object == "refund" else _of_intent(thing, payment)


def _of_refund(refund: stripe.Refund, payment: Payment, may_ask: bool = True) -> list[Record]:
    told = refunds.outcome(refund)
    named = _uuid(refunds.operation_of(refund))
    if named is None and not _is_captured(payment) and (not may_ask or _is_of_hold(refund, payment)):
        return []
    record = _record(named or _outside(refund.id), Kind.REFUND, told.verdict, payment, told.amount or 0)
    return [replace(record, is_outside=named is None)]


def _is_captured(payment: Payment) -> bool:
    return payment.status in (Payment.Status.CAPTURED, Payment.Status.REFUNDED)


def _is_of_hold(refund: stripe.Refund, payment: Payment) -> bool:
    """Whether a refund that others made gave no money back: events of before 2025-03-31 show one for a released hold.

    It is for a payment that we do not know to be captured: Stripe is asked. Raises ProviderUnreachable.
    """
    if refund.reason == "expired_uncaptured_charge":
        return True
    try:
        intent = client.patiently(lambda: client.intent_of(payment, seconds=client.ASK_SECONDS))
    except stripe.StripeError as error:
        raise ProviderUnreachable from error
    return intent.status == "canceled"


def _of_intent(intent: stripe.PaymentIntent, payment: Payment) -> list[Record]:
    """Return a record of each act that the intent shows, under our operation's id; without one, under a derived id.

    It is of our last attempt at the act; a refusal that the intent's end explains is of every attempt.
    """
    own = list(payment.operations.order_by("created_at"))
    found = []
    for kind in (Kind.AUTHORIZE, Kind.CAPTURE, Kind.VOID):
        told = intents.outcome(kind, intent)
        keys = [row.pk for row in own if row.kind == kind]
        if told.verdict == Verdict.NOT_FOUND:
            continue
        if told.verdict != Verdict.FAILED or kind == Kind.AUTHORIZE:
            keys = keys[-1:] or [_outside(f"{intent.id} {kind}")]
        amount = payment.amount if told.amount is None else told.amount
        found += [_record(key, kind, told.verdict, payment, amount) for key in keys]
    return found


def _record(key: UUID, kind: str, verdict: Verdict, payment: Payment, amount: int) -> Record:
    return Record(key, kind, verdict, payment.pk, payment.merchant_id, amount, payment.currency)


def _outside(name: str) -> UUID:
    return uuid5(_OUTSIDE, name)
