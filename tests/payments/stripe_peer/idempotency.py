"""Stores the first response under each idempotency key, so that a request can safely be repeated.

(Reference: "Idempotent requests")
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.payments.stripe_peer import errors
from tests.payments.stripe_peer.books import Book, Peer
from tests.payments.stripe_peer.errors import Refusal

LIFE_SECONDS = 24 * 3600
MAX_LENGTH = 255


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Stored:
    request: str
    at: float
    reply: Reply | None = None  # None while the first request is being processed


def run(book: Book, key: str, request: Any, work: Callable[[], Reply]) -> Reply:
    """Do the work once per key. A repeated request gets the first response, even if it is an error.

    A request with an invalid parameter, or with a key that is in use, is refused before the work begins. In
    this case, no response is stored.
    """
    if len(key) > MAX_LENGTH:
        raise Refusal(f"Idempotency keys have at most {MAX_LENGTH} characters.", type=errors.IDEMPOTENCY)
    written, place = json.dumps(request, sort_keys=True), (book.account, book.livemode, key)
    with book.peer.lock:
        if (reply := _earlier(book.peer, place, written)) is not None:
            return replace(reply, headers=reply.headers | {"Idempotent-Replayed": "true"})
        stored = book.peer.keys[place] = Stored(written, time.time() + book.peer.ahead)
    try:
        stored.reply = work()
    finally:
        if stored.reply is None:
            del book.peer.keys[place]
    return stored.reply


def _earlier(peer: Peer, place: tuple[str, bool, str], request: str) -> Reply | None:
    stored: Stored | None = peer.keys.get(place)
    if stored is None or stored.at + LIFE_SECONDS <= time.time() + peer.ahead:
        return None
    if stored.request != request:
        message = "Keys for idempotent requests can only be used with the same parameters they were first used with."
        raise Refusal(message, type=errors.IDEMPOTENCY)
    if stored.reply is None:
        message = "There is currently another in-progress request using this Idempotent Key."
        raise Refusal(message, "idempotency_key_in_use", status=409, type=errors.IDEMPOTENCY)
    return stored.reply


def broken(peer: Peer) -> list[str]:
    """Return the keys for which a server error is stored."""
    stored = ((place[2], row.reply) for place, row in peer.keys.items())
    return [key for key, reply in stored if reply is not None and reply.status >= 500]


def age(peer: Peer, seconds: float = LIFE_SECONDS) -> None:
    """Make every key the given number of seconds older."""
    for stored in peer.keys.values():
        stored.at -= seconds
