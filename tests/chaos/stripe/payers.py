"""Makes the sandbox's helper API work in a process whose provider is Stripe.

The payers' cards and their 3-D Secure answers are sent to the peer, which simulates Stripe's API.
"""

import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from hosted_page.sandbox import paying
from payments.models import Operation
from payments.provider import CardUse, Notification
from payments.providers.sandbox import client
from tests.payments.stripe_peer.remote import Remote

CARDS = {
    "4242424242424242": "pm_card_visa",
    "5555555555554444": "pm_card_mastercard",
    "4000000000000002": "pm_card_chargeDeclined",
    "4000002500003155": "pm_card_threeDSecure2Required",
}


def connect(address: str) -> None:
    """Let payers pay at the peer when a test uses this process's helper API.

    After a 3-D Secure challenge, a payer is redirected to an address that does not exist.
    """
    client.call_bank = partial(_ask, Remote(address))
    paying.CardUse = partial(CardUse, return_url="https://pay.example/back")  # type: ignore[attr-defined,assignment]


def _ask(peer: Remote, verb: str, /, **arguments: Any) -> Any:
    return _DOES[verb](peer, **arguments)


def _tokenise(peer: Remote, subject: UUID, number: str) -> str:
    return str(peer.switch("confirmation_token", card=CARDS[number])["id"])


def _answer(peer: Remote, key: UUID, is_confirmed: bool) -> None:
    asked = Operation.objects.get(pk=key)
    answer = b"answer=confirm" if is_confirmed else b"answer=refuse"
    request = urllib.request.Request(asked.action_url, answer)
    urllib.request.build_opener(_NoRedirect).open(request, timeout=10).close()


def _advance(peer: Remote, payments: list[UUID], seconds: int) -> None:
    """Return immediately, because the peer has already settled its refunds."""


def _tell(peer: Remote, payments: list[UUID]) -> list[Notification]:
    """Return no notifications, because the peer sends its own."""
    return []


_DOES: dict[str, Callable[..., Any]] = {
    "tokenise": _tokenise,
    "answer_challenge": _answer,
    "advance": _advance,
    "tell": _tell,
}


class _NoRedirect(urllib.request.HTTPErrorProcessor):
    """Returns a redirect as a response instead of following it, because the shop's page does not exist."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response
