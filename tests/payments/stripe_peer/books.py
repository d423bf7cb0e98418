"""The state of the peer: the objects of each account and mode, its clock, and the switches that tests have set."""

import copy
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.payments.stripe_peer import errors

Thing = dict[str, Any]  # an object of Stripe's API
PLATFORM = "acct_platform"
CONNECTED = ("acct_connected1", "acct_connected2")
KEYS = ("sk_test_peer", "sk_live_peer")
PREFIXES = {
    "payment_intent": "pi",
    "charge": "ch",
    "refund": "re",
    "dispute": "du",
    "event": "evt",
    "balance_transaction": "txn",
    "payout": "po",
    "payment_method": "pm",
    "confirmation_token": "ctoken",
    "webhook_endpoint": "we",
    "payment_method_domain": "pmd",
}


@dataclass
class Peer:
    """The state of one peer process. A thread that reads or changes it must hold `lock`."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    books: dict[tuple[str, bool], "Book"] = field(default_factory=dict)
    keys: dict[Any, Any] = field(default_factory=dict)  # idempotency keys
    faults: list[Thing] = field(default_factory=list)
    met: list[Thing] = field(default_factory=list)  # the faults that have affected a request
    partial: list[int] = field(default_factory=list)  # maximum amounts of the next authorizations
    # Calls that are carried out later. Each has the time from which it is due.
    late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    pending: list[Thing] = field(default_factory=list)  # reasons for which the next refunds are pending
    ahead: int = 0  # the number of seconds by which tests have advanced the clock
    # Chooses the sizes of pages, and the order of objects that are created in the same second.
    chance: Random = field(default_factory=lambda: Random(1))

    def now(self) -> int:
        return int(time.time()) + self.ahead

    def book(self, account: str, livemode: bool) -> "Book":
        """Return the book of one account in one mode. A request sees only the objects of one book."""
        return self.books.setdefault((account, livemode), Book(self, account, livemode))


@dataclass
class Book:
    peer: Peer
    account: str
    livemode: bool
    objects: dict[str, dict[str, Thing]] = field(default_factory=dict)
    cards: dict[str, str] = field(default_factory=dict)  # maps a payment method to its name in `cards.CARDS`
    version: str = ""  # the API version of the account's events, or "" for the request's version
    lacks: Thing = field(default_factory=dict)  # fields of the account that tests have changed
    # If the balance has only one currency: this currency, and the exchange rate.
    settles_in: tuple[str, float] | None = None
    request_ids: Thing = field(default_factory=dict)  # the ids of the current request, which its events name

    def make(self, kind: str, **fields: Any) -> Thing:
        """Add an object with a new id."""
        row: Thing = {"id": f"{PREFIXES[kind]}_{secrets.token_hex(12)}", "object": kind}
        row |= {"created": self.peer.now(), "livemode": self.livemode} | fields
        row["_rank"] = self.peer.chance.random()
        self.objects.setdefault(kind, {})[row["id"]] = row
        return row

    def find(self, kind: str, object_id: str, param: str = "id") -> Thing:
        """Return the object, or raise `resource_missing`."""
        row = self.objects.get(kind, {}).get(object_id)
        if row is None:
            raise errors.missing(kind.replace("_", ""), object_id, param)
        return row

    def all(self, kind: str) -> list[Thing]:
        """Return all objects of a kind, newest first. Objects of the same second are in random order.

        (Reference: "Pagination")
        """
        return sorted(self.objects.get(kind, {}).values(), key=lambda row: (-row["created"], row["_rank"]))

    def by_id(self, object_id: str) -> Thing | None:
        return next((kind[object_id] for kind in self.objects.values() if object_id in kind), None)

    def emit(self, name: str, subject: Thing, **previous: Any) -> Thing:
        """Add an event with the current state of the object. (Reference: "Events", "The Event object")"""
        content: Thing = {"object": self._in_own_version(subject)} | (
            {"previous_attributes": previous} if previous else {}
        )
        fields: Thing = {
            "type": name,
            "data": content,
            "api_version": self.version or self.request_ids.get("version"),
            "pending_webhooks": len(self.listeners(name)),
            "request": {
                "id": self.request_ids.get("id"),
                "idempotency_key": self.request_ids.get("idempotency_key"),
            },
        }
        if self.account != PLATFORM:
            fields["account"] = self.account
        return self.make("event", **fields)

    def _in_own_version(self, subject: Thing) -> Thing:
        """Return a copy of the object in the account's API version. (Documentation: "API upgrades", 2022-11-15)"""
        copied = copy.deepcopy(subject)
        if "latest_charge" in copied and "" < self.version < "2022-11-15":
            del copied["latest_charge"]
            rows = [public_fields(row) for row in self.all("charge") if row["payment_intent"] == copied["id"]]
            copied["charges"] = {"object": "list", "has_more": False, "data": rows}
        return copied

    def listeners(self, name: str) -> list[Thing]:
        """Return the webhook endpoints that get this event. (Reference: "Webhook Endpoints", `connect`)"""
        is_connected = self.account != PLATFORM
        owner = self.peer.book(PLATFORM, self.livemode) if is_connected else self
        return [
            endpoint
            for endpoint in owner.all("webhook_endpoint")
            if endpoint["_connect"] == is_connected and {"*", name} & set(endpoint["enabled_events"])
        ]


@dataclass(frozen=True)
class Call:
    """A request that has passed the checks, with its book, the id of its object and its parameters."""

    book: Book
    parameters: Thing
    id: str = ""
    address: str = ""  # the peer's base address

    @property
    def peer(self) -> Peer:
        return self.book.peer


Answer = Callable[[Call], Thing]


def public_fields(subject: Any) -> Any:
    """Return an object, or a list of objects, without the peer's private fields."""
    if isinstance(subject, dict):
        return {name: public_fields(value) for name, value in subject.items() if not name.startswith("_")}
    return [public_fields(value) for value in subject] if isinstance(subject, list) else subject


def merge_metadata(old: Thing, update: Any) -> Thing:
    """Return the metadata after an update. An empty value removes one name, and "" removes all names.

    (Reference: "Metadata")
    """
    if update is None:
        return old
    merged = {} if update == "" else old | update
    return {name: value for name, value in merged.items() if value != ""}


def each_book(peer: Peer) -> Iterator[Book]:
    yield from list(peer.books.values())
