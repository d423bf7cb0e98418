"""Calls Stripe's API with Stripe's library. Each call has its own client, with the timeout of the caller."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import stripe
import structlog
from django.conf import settings
from stripe import StripeClient
from stripe.params import PaymentIntentRetrieveParams

from config.lib.deadline import Deadline
from config.lib.web import http
from payments.models import Payment

log = structlog.get_logger("payments.providers.stripe")
ASK_SECONDS = 8.0  # for a request that does not move money
BOOKS_SECONDS = 30.0  # for a page of the books, which are read at night
BOOKS_PAUSES = (1.0, 4.0, 15.0)  # before a page is requested again
PAGE_SECONDS = 60.0  # after this, a page is not requested again, because an operator might be waiting
TRANSIENT_ERRORS = (stripe.APIConnectionError, stripe.APIError, stripe.RateLimitError)
T = TypeVar("T")
logging.getLogger("stripe").setLevel(logging.CRITICAL + 1)  # because the library logs its requests


class Transport(stripe.HTTPClient):
    """Sends the library's requests, each over a new connection.

    A connection that was kept open might be broken. The outcome would then be unknown.
    """

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
            raise stripe.APIConnectionError(str(error)) from error  # type: ignore[no-untyped-call]  # untyped there
        return answer.body.decode(errors="replace"), answer.status, answer.headers

    def close(self) -> None:
        """Do nothing, because no connection is kept open."""


def client_for(account: str, *, seconds: float) -> StripeClient:
    """Return a client for an account ("" for the platform's own). It does not retry requests automatically."""
    return StripeClient(
        settings.STRIPE_SECRET_KEY,
        stripe_account=account or None,
        base_addresses={"api": settings.STRIPE_API},
        max_network_retries=0,
        http_client=Transport(seconds),
    )


def intent_of(payment: Payment, *, seconds: float, expand: str = "latest_charge") -> stripe.PaymentIntent:
    """Return the PaymentIntent of a payment with its charge, read by id. Raises stripe.StripeError."""
    parameters: PaymentIntentRetrieveParams = {"expand": [expand]}
    intents = client_for(payment.provider_account, seconds=seconds).v1.payment_intents
    return intents.retrieve(payment.provider_reference, parameters)


def call_with_retries(read_page: Callable[[], T]) -> T:
    """Call `read_page` and return its result. After each failure, wait and try again.

    Otherwise, a single failed page would end the whole nightly read of the books. Raises stripe.StripeError.
    """
    deadline = Deadline.after(PAGE_SECONDS)
    for pause in BOOKS_PAUSES:
        try:
            return read_page()
        except TRANSIENT_ERRORS as error:
            if deadline.remaining() < pause:
                raise
            log.warning("stripe page asked for again", status=error.http_status, request=error.request_id)
            time.sleep(pause)
    return read_page()
