"""The adapter for Stripe, which implements the provider port."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias
from uuid import UUID

import stripe
import structlog
from django.conf import settings
from stripe import PaymentIntentService, RequestOptions
from stripe.params import PaymentIntentConfirmParams, PaymentIntentCreateParams, RefundCreateParams

from config.lib.web import origins
from payments.models import Operation, Payment
from payments.provider import CardForm, CardPage, CardUse, Outcome, Verdict
from payments.providers.stripe import (
    amounts,
    balance,
    books,
    changes,
    client,
    intents,
    metadata,
    movements,
    notifications,
    readiness,
    reasons,
    refunds,
)

log = structlog.get_logger("payments.providers.stripe")
Kind = Operation.Kind
Change: TypeAlias = Callable[[PaymentIntentService, str, RequestOptions], stripe.PaymentIntent]
METHODS = ["card", "link"]  # cards, wallets with cards, and Link; all of them support holds
UNEXPECTED_STATE = "payment_intent_unexpected_state"


class StripeProvider:
    """Implements payments.provider.Provider with Stripe's PaymentIntents. Holding and capturing are separate steps.

    The service creates each PaymentIntent without confirming it, and commits its id. The confirmation then holds the
    money.
    """

    urls = ""
    page_origins: tuple[str, ...] = ()
    key_life = timedelta(hours=24)  # Stripe's reference: "Idempotent requests"
    amount_rule = staticmethod(amounts.amount_rule)
    parse_notifications = staticmethod(notifications.read_message)
    movements = staticmethod(movements.read_books)
    changed = staticmethod(changes.changed_payments)
    payments = staticmethod(books.payments_since)
    entries = staticmethod(balance.balance_entries)
    missing = staticmethod(readiness.missing_parts)

    @property
    def payment_origins(self) -> tuple[str, ...]:
        return (origins.origin_of(settings.STRIPE_SCRIPT),)

    def open_card_form(self, form: CardForm) -> CardPage:
        context = {
            "stripe_script": settings.STRIPE_SCRIPT,
            "publishable_key": settings.STRIPE_PUBLISHABLE_KEY,
            "account": form.account,
            "amount": amounts.to_stripe_amount(form.amount, form.currency),
            "currency": form.currency.lower(),
            "methods": METHODS,
            "return_url": form.return_url,
        }
        return CardPage("stripe/card.html", context, _element_origins())

    def register(self, payment: Payment, patience: float) -> Outcome:
        parameters: PaymentIntentCreateParams = {
            "amount": amounts.to_stripe_amount(payment.amount, payment.currency),
            "currency": payment.currency.lower(),
            "capture_method": "manual",
            "allowed_payment_method_types": METHODS,
            "metadata": metadata.describe_payment(payment),
        }
        service = client.client_for(payment.provider_account, seconds=patience).v1.payment_intents

        def register() -> Outcome:
            return Outcome(
                Verdict.SUCCEEDED, reference=service.create(parameters, _request_options(payment.pk)).id
            )

        return _outcome_of_call(Kind.AUTHORIZE, register)

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        parameters: PaymentIntentConfirmParams = {
            "return_url": card.return_url,
            "expand": ["latest_charge"],
        }
        if card.token.startswith("ctoken_"):
            parameters["confirmation_token"] = card.token
        else:
            parameters["payment_method"] = card.token
        # A mate's money is passed on to the lead's card, so the mate is asked to confirm with 3-D Secure.
        if operation.payment.kind == Payment.Kind.SHARE:
            parameters["payment_method_options"] = {"card": {"request_three_d_secure": "any"}}
        return _change_intent(
            operation, patience, lambda service, pi, key: service.confirm(pi, parameters, key)
        )

    def capture(self, operation: Operation, patience: float) -> Outcome:
        return _change_intent(operation, patience, lambda service, pi, key: service.capture(pi, None, key))

    def void(self, operation: Operation, patience: float) -> Outcome:
        return _change_intent(operation, patience, lambda service, pi, key: service.cancel(pi, None, key))

    def refund(self, operation: Operation, patience: float) -> Outcome:
        payment = operation.payment
        parameters: RefundCreateParams = {
            "payment_intent": payment.provider_reference,
            "amount": amounts.to_stripe_amount(operation.amount, payment.currency),
            "metadata": metadata.describe_refund(operation),
        }
        service = client.client_for(payment.provider_account, seconds=patience).v1.refunds
        return _outcome_of_call(
            Kind.REFUND,
            lambda: refunds.refund_outcome(service.create(parameters, _request_options(operation.pk))),
        )

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        payment = operation.payment
        if not payment.provider_reference:
            # Without an id, no call was sent, because the id is committed before any call about the intent.
            return intents.ABSENT
        if operation.kind == Kind.REFUND:
            return refunds.look_up(operation, seconds=patience)
        return intents.intent_outcome(operation.kind, client.intent_of(payment, seconds=patience))


def _element_origins() -> dict[str, list[str]]:
    """Return the origins that the Payment Element needs, by directive of the Content Security Policy.

    Stripe's documentation: "Security guide", Content Security Policy.
    """
    script = [origins.origin_of(settings.STRIPE_SCRIPT), "https://*.js.stripe.com"]
    api = origins.origin_of(settings.STRIPE_API)
    return {
        "script-src": script,
        "frame-src": [*script, "https://hooks.stripe.com"],
        "connect-src": [api],
    }


def _request_options(key: UUID) -> RequestOptions:
    return {"idempotency_key": str(key)}


def _change_intent(operation: Operation, patience: float, change: Change) -> Outcome:
    """Confirm, capture or cancel the payment's PaymentIntent, with the operation's id as key."""
    payment = operation.payment
    if not payment.provider_reference:
        return Outcome(Verdict.FAILED, reason="unknown_payment")
    service = client.client_for(payment.provider_account, seconds=patience).v1.payment_intents

    def ask() -> Outcome:
        intent = change(service, payment.provider_reference, _request_options(operation.pk))
        return intents.intent_outcome(operation.kind, intent)

    return _outcome_of_call(operation.kind, ask)


def _outcome_of_call(kind: str, send_request: Callable[[], Outcome]) -> Outcome:
    """Make a call that can move money, and return its outcome.

    If Stripe returns an error, the outcome is derived from the error.
    """
    try:
        return send_request()
    except stripe.APIConnectionError:
        raise  # Stripe has not answered, so the caller treats the outcome as unknown
    except stripe.CardError as error:
        return Outcome(Verdict.DECLINED, reason=reasons.decline_reason(*reasons.error_codes(error.error)))
    except stripe.StripeError as error:
        return _outcome_of_error(kind, error)


def _outcome_of_error(kind: str, error: stripe.StripeError) -> Outcome:
    """Return the outcome (succeeded, failed or unknown) for an error that is not about the card."""
    code, _ = reasons.error_codes(error.error)
    log.warning(
        "stripe refused",
        kind=kind,
        status=error.http_status,
        code=code,
        param=getattr(error, "param", None),
        request=error.request_id,
    )
    if isinstance(error, stripe.InvalidRequestError):
        return _outcome_of_refused_intent(kind, code, error)
    if isinstance(error, stripe.AuthenticationError | stripe.PermissionError) and kind == Kind.AUTHORIZE:
        return Outcome(Verdict.FAILED, reason="provider_refused")
    # If the key is in use (409), Stripe is still processing an earlier call. After a 5xx answer, Stripe might still
    # carry out the call. Stripe's documentation: "Advanced error handling", "Server errors".
    return Outcome(Verdict.UNKNOWN)


def _outcome_of_refused_intent(kind: str, code: str, error: stripe.InvalidRequestError) -> Outcome:
    """Return the outcome of a request that Stripe has refused.

    It is FAILED, unless the error contains a PaymentIntent that shows a different outcome.
    """
    intent = getattr(error.error, "payment_intent", None)
    if code == UNEXPECTED_STATE and intent is not None and kind != Kind.REFUND:
        found = intents.intent_outcome(kind, intent)
        if found.verdict != Verdict.NOT_FOUND:
            return found
    return Outcome(Verdict.FAILED, reason=code or "refused")
