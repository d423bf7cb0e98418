"""The switches with which tests control the peer: JSON requests to `/_peer/…`. Stripe has no such API."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

from tests.payments.stripe_peer import events, idempotency
from tests.payments.stripe_peer.books import CONNECTED, KEYS, PLATFORM, Book, Peer, each_book, shown
from tests.payments.stripe_peer.errors import Refusal
from tests.payments.stripe_peer.resources import disputes, methods, payouts, refunds

Asked = dict[str, Any]
MODES = ("hang", "reset", "error", "slow", "repeat")


def turn(peer: Peer, name: str, asked: Asked) -> Any:
    """Call the switch, and return its response."""
    if name not in _SWITCHES:
        raise Refusal(f"There is no switch {name}.", status=404)
    if name == "deliver":  # it sends requests, which must not happen under the lock
        return _SWITCHES[name](peer, asked)
    with peer.lock:
        return shown(_SWITCHES[name](peer, asked))


def fault(peer: Peer, method: str, path: str) -> Asked | None:
    """Return the fault that is set for this request, if any, and reduce its remaining number by one."""
    with peer.lock:
        for row in peer.faults:
            if row["method"] in ("", method) and re.fullmatch(row["path"], path):
                row["times"] -= 1
                peer.met.append(dict(row))
                if row["times"] <= 0:
                    peer.faults.remove(row)
                return row
    return None


def _fault(peer: Peer, asked: Asked) -> None:
    """Add a fault: the next `times` requests to `path` fail, `before` or `after` they are carried out.

    `path` is a regular expression. The modes are:

    - hang: the connection breaks after `seconds` without a response.
    - reset: the connection breaks.
    - error: the response is a 500 or, if `when` is `before`, `status`. If `when` is `after`, `stored` or
      `later`, the error is stored under the key. With `stored`, the request is not carried out. With `later`,
      it is carried out when `seconds` have passed.
    - slow: the request is carried out after `seconds`, and its key is in use until then.
    - repeat: the network delivers the request twice.
    """
    row = {"path": ".*", "method": "", "when": "before", "times": 1, "seconds": 20.0} | asked
    if row.get("mode") not in MODES or row["when"] not in ("before", "after", "stored", "later"):
        raise Refusal("A fault has a mode that the peer knows, before, after, stored or later.")
    peer.faults.append(row)


def _book(peer: Peer, asked: Asked) -> Book:
    return peer.book(asked.get("account", PLATFORM), asked.get("livemode", False))


def _clear(peer: Peer, asked: Asked) -> None:
    """Reset the peer to its initial state.

    `seed` determines the order of objects within a second, and the sizes of pages.
    """
    for held in (peer.books, peer.keys, peer.faults, peer.met, peer.partial, peer.late, peer.pending):
        held.clear()
    peer.ahead, peer.chance = 0, Random(asked.get("seed", 1))


def _advance(peer: Peer, asked: Asked) -> None:
    peer.ahead += asked["seconds"]


def _settle(peer: Peer, asked: Asked) -> None:
    for book in each_book(peer):
        refunds.settle(book)


def _pay_out(peer: Peer, asked: Asked) -> Any:
    return payouts.pay_out(_book(peer, asked), asked["currency"], is_automatic=asked.get("automatic", True))


def _end_refund(peer: Peer, asked: Asked) -> Any:
    """Let a refund succeed, fail or be cancelled, regardless of its current status."""
    book = _book(peer, asked)
    refund = book.find("refund", asked["refund"])
    refunds.end(book, refund, asked["status"])
    return refund


def _dispute(peer: Peer, asked: Asked) -> Any:
    book = _book(peer, asked)
    differs = {name: asked[name] for name in ("amount", "status", "withdraws") if name in asked}
    reason = asked.get("reason", "fraudulent")
    return disputes.open_one(book, book.find("charge", asked["charge"]), reason, **differs)


def _decide(peer: Peer, asked: Asked) -> Any:
    """Give a dispute another status. A final status moves the money to the winner."""
    book = _book(peer, asked)
    dispute = book.find("dispute", asked["dispute"])
    changes = disputes.end if asked["status"] in disputes.ENDS else disputes.go_on
    changes(book, dispute, asked["status"])
    return dispute


def _move_dispute(peer: Peer, asked: Asked) -> Any:
    """Withdraw or reinstate the money of a dispute, regardless of its status."""
    book = _book(peer, asked)
    dispute = book.find("dispute", asked["dispute"])
    (disputes.reinstate if asked["is_back"] else disputes.withdraw)(book, dispute)
    return dispute


def _settle_in(peer: Peer, asked: Asked) -> None:
    """Keep the account's balance in one currency from now on. Convert other currencies at `rate`."""
    _book(peer, asked).settles_in = (asked["currency"], asked["rate"])


def _token(peer: Peer, asked: Asked) -> Any:
    """Create a confirmation token as Stripe's own card fields do, in any mode."""
    book = _book(peer, asked)
    return methods.add_token(book, methods.add(book, asked.get("card", "pm_card_visa")), asked)


def _keys(peer: Peer, asked: Asked) -> Any:
    return {"keys": KEYS, "platform": PLATFORM, "connected": CONNECTED}


def _lacks(peer: Peer, asked: Asked) -> None:
    """Change fields of the account from now on."""
    _book(peer, asked).lacks = asked["fields"]


def _show(peer: Peer, asked: Asked) -> Any:
    """Change fields of an object."""
    found = _book(peer, asked).by_id(asked["thing"])
    if found is None:
        raise Refusal(f"There is no {asked['thing']}.")
    found |= asked["fields"]
    return found


def _version(peer: Peer, asked: Asked) -> None:
    """Write the account's events in the given API version from now on."""
    _book(peer, asked).version = asked["version"]


_SWITCHES: dict[str, Callable[[Peer, Asked], Any]] = {
    "fault": _fault,
    "faults": lambda peer, asked: peer.faults,
    "go_right": lambda peer, asked: peer.faults.clear(),
    "met": lambda peer, asked: peer.met,
    "clear": _clear,
    "advance": _advance,
    "age_keys": lambda peer, asked: idempotency.age(peer, **asked),
    "broken_keys": lambda peer, asked: idempotency.broken(peer),
    "partial": lambda peer, asked: peer.partial.append(asked["amount"]),
    "settle_refunds": _settle,
    "pending_refund": lambda peer, asked: peer.pending.append({"reason": "processing"} | asked),
    "end_refund": _end_refund,
    "move_dispute": _move_dispute,
    "settle_in": _settle_in,
    "pay_out": _pay_out,
    "dispute": _dispute,
    "decide": _decide,
    "confirmation_token": _token,
    "deliver": lambda peer, asked: events.deliver(_book(peer, asked), asked),
    "keys": _keys,
    "lacks": _lacks,
    "show": _show,
    "now": lambda peer, asked: peer.now(),
    "version": _version,
}
