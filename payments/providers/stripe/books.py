"""Reads lists from each Stripe account, and finds the payment to which a Stripe object belongs.

An object that does not belong to one of our payments in its account is ignored, because another system might use the
same account. Rule provider.accounts.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import stripe
import structlog
from django.db.models import QuerySet
from stripe.params import PaymentIntentListParams

from payments.discrepancies import kinds, reporting
from payments.models import FormerAccount, Merchant, Operation, Payment
from payments.provider import PaymentRecord, ProviderUnreachable, Verdict
from payments.providers.stripe import amounts, client, intents, metadata

log = structlog.get_logger("payments.providers.stripe")
T = TypeVar("T", bound=stripe.StripeObject)
Kind = Operation.Kind
NAMES = (metadata.PAYMENT, metadata.MERCHANT, metadata.SUBJECT)
# The event types that a webhook endpoint must receive.
EVENTS = (
    *("payment_intent.amount_capturable_updated", "payment_intent.canceled", "payment_intent.payment_failed"),
    *("payment_intent.processing", "payment_intent.requires_action", "payment_intent.succeeded"),
    *("refund.created", "refund.failed", "refund.updated"),
    *("charge.dispute.created", "charge.dispute.closed", "charge.dispute.updated"),
    *("charge.dispute.funds_reinstated", "charge.dispute.funds_withdrawn"),
)


def payments_since(since: datetime) -> Iterator[PaymentRecord]:
    """Yield the PaymentIntents made since `since` for one of our payments. Raises ProviderUnreachable.

    The metadata of such a PaymentIntent contains the ids of the payment and its merchant. However, the owner of an
    account can write any metadata there. The ids are therefore accepted only if the account belongs or belonged to
    this merchant.
    """
    parameters: PaymentIntentListParams = {
        "created": {"gte": int(since.timestamp())},
        "limit": 100,
        "expand": ["data.latest_charge"],
    }
    for account in list_accounts():
        merchants = _merchants_of(account)
        for intent in _list_intents(account, parameters):
            payment, merchant, subject = (metadata.read_id(intent, name) for name in NAMES)
            if payment is None or merchant is None or subject is None:
                continue
            if merchant in merchants and not _belongs_to_another(payment, merchant):
                yield _payment_record(intent, account, payment, merchant, subject)
            else:
                log.error(
                    "stripe metadata not believed", account=account, intent=intent.id, payment=str(payment)
                )


def _merchants_of(account: str) -> set[UUID]:
    """Return the merchants that own or owned an account. `account` is "" for the platform's own account."""
    current = Merchant.objects.filter(provider_account=account).values_list("pk")
    former = FormerAccount.objects.filter(provider_account=account).values_list("merchant")
    return {merchant for (merchant,) in current.union(former)}


def _belongs_to_another(payment: UUID, merchant: UUID) -> bool:
    return Payment.objects.filter(pk=payment).exclude(merchant=merchant).exists()


def _list_intents(account: str, parameters: PaymentIntentListParams) -> Iterator[stripe.PaymentIntent]:
    return list_objects(account, lambda stripe_client: stripe_client.v1.payment_intents.list(parameters))


def _payment_record(
    intent: stripe.PaymentIntent, account: str, payment: UUID, merchant: UUID, subject: UUID
) -> PaymentRecord:
    return PaymentRecord(
        payment=payment,
        account=merchant,
        subject=subject,
        amount=amounts.from_stripe_amount(intent.amount, intent.currency),
        currency=intent.currency.upper(),
        is_moved=intents.intent_outcome(Kind.AUTHORIZE, intent).verdict == Verdict.SUCCEEDED,
        reference=intent.id,
        place=account,
        card=intents.card_details(intent),
    )


def list_accounts() -> list[str]:
    """Return the accounts that belong or belonged to merchants. The platform's own account is "".

    Former accounts are included, because payments stay in the account in which they were made.
    """
    former = FormerAccount.objects.values_list("provider_account", flat=True)
    return list(current_accounts().union(former))


def current_accounts() -> QuerySet[Merchant, str]:
    """Return the accounts in which new payments are made. The platform's own account is ""."""
    return Merchant.objects.values_list("provider_account", flat=True).distinct()


def list_objects(account: str, request: Callable[[stripe.StripeClient], stripe.ListObject[T]]) -> Iterator[T]:
    """Yield the objects on all pages of a list in an account. Raises ProviderUnreachable.

    If we are no longer allowed to read a merchant's account, this is reported and the list ends. The caller then
    continues with the other accounts.
    """
    try:
        stripe_client = client.client_for(account, seconds=client.BOOKS_SECONDS)
        page = client.call_with_retries(lambda: request(stripe_client))
        while not page.is_empty:
            yield from page
            page = client.call_with_retries(page.next_page)
    except stripe.PermissionError as error:
        if not account:
            raise ProviderUnreachable from error
        log.error("stripe account not readable", account=account, code=error.code, request=error.request_id)
        for merchant in _merchants_of(account):
            reporting.report(kinds.ACCOUNT_UNREADABLE, merchant, merchant=merchant, account=account)
    except stripe.StripeError as error:
        raise ProviderUnreachable from error


def payment_of(stripe_object: Any, account: str) -> Payment | None:
    """Return our payment for a PaymentIntent or for an object with its id, or None if it is not ours."""
    intent = (
        stripe_object.id
        if stripe_object.object == "payment_intent"
        else getattr(stripe_object, "payment_intent", None)
    )
    payments = Payment.objects.filter(provider_reference=intent or "", provider_account=account)
    return payments.first() if intent else None
