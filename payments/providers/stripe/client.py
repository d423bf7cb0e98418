"""Asks Stripe's API by its own library: one client for each call, which ends in the seconds that its caller has."""

import logging
from collections.abc import Mapping
from typing import Any

import stripe
from django.conf import settings
from stripe import StripeClient
from stripe.params import PaymentIntentRetrieveParams

from config.lib.web import http
from payments.models import Payment

ASK_SECONDS = 8.0  # for a question that moves no money
BOOKS_SECONDS = 30.0  # for a page of the books, which is read at night
logging.getLogger("stripe").setLevel(logging.CRITICAL + 1)  # it logs what it sends


class Transport(stripe.HTTPClient):
    """Carries the library's requests, each over a connection of its own: a kept one may be dead, which would leave
    the outcome unknown."""

    name = "aiohttp"

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None, **_: Any
    ) -> tuple[str, int, Mapping[str, str]]:
        """Return body, status and headers. Raises stripe.APIConnectionError."""
        body = post_data.encode() if isinstance(post_data, str) else post_data or b""
        try:
            answer = http.request(method, url, body, dict(headers or {}), seconds=self.seconds)
        except http.NoAnswer as error:
            raise stripe.APIConnectionError(str(error)) from error  # type: ignore[no-untyped-call]  # its own
        return answer.body.decode(errors="replace"), answer.status, answer.headers

    def close(self) -> None:
        """Nothing is kept open."""


def of(account: str, *, seconds: float) -> StripeClient:
    """Return a client for an account, "" for the platform's own; it repeats no request by itself."""
    return StripeClient(
        settings.STRIPE_SECRET_KEY,
        stripe_account=account or None,
        base_addresses={"api": settings.STRIPE_API},
        max_network_retries=0,
        http_client=Transport(seconds),
    )


def intent_of(payment: Payment, *, seconds: float) -> stripe.PaymentIntent:
    """Read a payment's PaymentIntent by its id, with its charge. Raises stripe.StripeError."""
    asked: PaymentIntentRetrieveParams = {"expand": ["latest_charge"]}
    intents = of(payment.provider_account, seconds=seconds).v1.payment_intents
    return intents.retrieve(payment.provider_reference, asked)
