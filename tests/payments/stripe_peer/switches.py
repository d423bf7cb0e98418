"""Switches: JSON requests to `/_peer/…` with which tests control the peer. Stripe has no such API."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

from tests.payments.stripe_peer import events, idempotency
from tests.payments.stripe_peer.books import CONNECTED, KEYS, PLATFORM, Book, Peer, each_book, public_fields
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.resources import disputes, methods, payouts, refunds

Body = dict[str, Any]
MODES = ("hang", "reset", "error", "slow", "repeat")


def turn(peer: Peer, name: str, body: Body) -> Any:
    """Call the switch, and return its response."""
    if name not in _SWITCHES:
        raise Refusal(f"There is no switch {name}.", status=404)
    if name == "deliver":  # this switch sends requests, which must not happen under the lock
        return _SWITCHES[name](peer, body)
    with peer.lock:
        return public_fields(_SWITCHES[name](peer, body))


def fault(peer: Peer, method: str, path: str) -> Body | None:
    """Return the fault that is set for this request, or None. Count the fault as used once."""
    with peer.lock:
        for row in peer.faults:
            if row["method"] in ("", method) and re.fullmatch(row["path"], path):
                row["times"] -= 1
                peer.met.append(dict(row))
                if row["times"] <= 0:
                    peer.faults.remove(row)
                return row
    return None


def _fault(peer: Peer, body: Body) -> None:
    """Add a fault: the next `times` requests to `path` fail, `before` or `after` the peer has carried them out.

    `path` is a regular expression. The modes are:

    - hang: the connection breaks after `seconds` without a response.
    - reset: the connection breaks.
    - error: the response has the status 500 or, with `before`, the given `status`. With `after`, `stored` or
      `later`, the error is stored under the key. With `stored`, the request is not carried out. With `later`,
      it is carried out after `seconds`.
    - slow: the request is carried out after `seconds`, and its key is in use until then.
    - repeat: the network delivers the request twice.
    """
    row = {"path": ".*", "method": "", "when": "before", "times": 1, "seconds": 20.0} | body
    if row.get("mode") not in MODES or row["when"] not in ("before", "after", "stored", "later"):
        raise Refusal("A fault has a mode that the peer knows, before, after, stored or later.")
    peer.faults.append(row)


def _book(peer: Peer, body: Body) -> Book:
    return peer.book(body.get("account", PLATFORM), body.get("livemode", False))


def _clear(peer: Peer, body: Body) -> None:
    """Reset the peer to its initial state.

    `seed` determines the sizes of pages, and the order of objects that are created in the same second.
    """
    for held in (peer.books, peer.keys, peer.faults, peer.met, peer.partial, peer.late, peer.pending):
        held.clear()
    peer.ahead, peer.chance = 0, Random(body.get("seed", 1))


def _advance(peer: Peer, body: Body) -> None:
    peer.ahead += body["seconds"]


def _settle(peer: Peer, body: Body) -> None:
    for book in each_book(peer):
        refunds.settle(book)


def _pay_out(peer: Peer, body: Body) -> Any:
    return payouts.pay_out(_book(peer, body), body["currency"], is_automatic=body.get("automatic", True))


def _end_refund(peer: Peer, body: Body) -> Any:
    """Let a refund succeed, fail or be cancelled, regardless of its current status."""
    book = _book(peer, body)
    refund = book.find("refund", body["refund"])
    refunds.end(book, refund, body["status"])
    return refund


def _dispute(peer: Peer, body: Body) -> Any:
    book = _book(peer, body)
    differs = {name: body[name] for name in ("amount", "status", "withdraws") if name in body}
    reason = body.get("reason", "fraudulent")
    return disputes.open_one(book, book.find("charge", body["charge"]), reason, **differs)


def _decide(peer: Peer, body: Body) -> Any:
    """Give a dispute another status. If the status is final, the money moves to the winner."""
    book = _book(peer, body)
    dispute = book.find("dispute", body["dispute"])
    changes = disputes.end if body["status"] in disputes.ENDS else disputes.go_on
    changes(book, dispute, body["status"])
    return dispute


def _move_dispute(peer: Peer, body: Body) -> Any:
    """Withdraw or reinstate the money of a dispute, or only `amount` of it, regardless of its status."""
    book = _book(peer, body)
    dispute = book.find("dispute", body["dispute"])
    (disputes.reinstate if body["is_back"] else disputes.withdraw)(book, dispute, body.get("amount"))
    return dispute


def _settle_in(peer: Peer, body: Body) -> None:
    """From now on, keep the account's balance in one currency. Convert other currencies at `rate`."""
    _book(peer, body).settles_in = (body["currency"], body["rate"])


def _token(peer: Peer, body: Body) -> Any:
    """Create a confirmation token as Stripe's own card fields do, in any mode."""
    book = _book(peer, body)
    return methods.add_token(book, methods.add(book, body.get("card", "pm_card_visa")), body)


def _keys(peer: Peer, body: Body) -> Any:
    return {"keys": KEYS, "platform": PLATFORM, "connected": CONNECTED}


def _lacks(peer: Peer, body: Body) -> None:
    """Change fields of the account."""
    _book(peer, body).lacks = body["fields"]


def _show(peer: Peer, body: Body) -> Any:
    """Change fields of an object."""
    subject = _book(peer, body).by_id(body["thing"])
    if subject is None:
        raise Refusal(f"There is no {body['thing']}.")
    subject |= body["fields"]
    return subject


def _version(peer: Peer, body: Body) -> None:
    """From now on, write the account's events in the given API version."""
    _book(peer, body).version = body["version"]


_SWITCHES: dict[str, Callable[[Peer, Body], Any]] = {
    "fault": _fault,
    "faults": lambda peer, body: peer.faults,
    "go_right": lambda peer, body: peer.faults.clear(),
    "met": lambda peer, body: peer.met,
    "clear": _clear,
    "advance": _advance,
    "age_keys": lambda peer, body: idempotency.age(peer, **body),
    "broken_keys": lambda peer, body: idempotency.broken(peer),
    "partial": lambda peer, body: peer.partial.append(body["amount"]),
    "settle_refunds": _settle,
    "pending_refund": lambda peer, body: peer.pending.append({"reason": "processing"} | body),
    "end_refund": _end_refund,
    "move_dispute": _move_dispute,
    "settle_in": _settle_in,
    "pay_out": _pay_out,
    "dispute": _dispute,
    "decide": _decide,
    "confirmation_token": _token,
    "deliver": lambda peer, body: events.deliver(_book(peer, body), body),
    "keys": _keys,
    "lacks": _lacks,
    "show": _show,
    "now": lambda peer, body: peer.now(),
    "version": _version,
}
