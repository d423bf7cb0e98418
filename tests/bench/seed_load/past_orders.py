"""Orders that have come to rest, told row by row with everything that belongs to them."""

import random
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.conf import settings
from django.db.models import Model
from uuid_utils.compat import uuid7

from checkout.models import ApiCall, Change, Checkout, Item, Refund
from config.lib import clock
from payments.models import Merchant, Operation, Payment, Posting
from webhooks.models import Event
from webhooks.outbox import API_VERSION

Rows = dict[type[Model], list[tuple[Any, ...]]]

FATES = {"captured": 60, "expired": 20, "voided": 12, "refunded": 8}  # of a hundred
ITEMS = {1: 20, 2: 25, 3: 25, 4: 15, 5: 15}  # how many lines an order has
GOODS = (
    ("Standing ticket", "ticket", 2250, '{"event_id": "E-71", "time_zone": "Europe/London"}'),
    ("Seat, row F", "ticket", 4500, '{"event_id": "E-71", "time_zone": "Europe/London"}'),
    ("Poster", "merchandise", 1200, None),
    ("Booking fee", "fee", 150, None),
    ("Postage", "shipping", 395, None),
)
# What the rows of each table give, in this order; every other column has its default.
COLUMNS: dict[type[Model], str] = {
    Checkout: "id merchant_id merchant_order_id amount currency return_url cancel_url created_at updated_at"
    " payable_until",
    Item: "id checkout_id position item_ref name quantity unit_price currency category custom_data",
    Payment: "id merchant_id subject checkout_uuid amount currency status card_token card_brand card_last4"
    " card_fingerprint created_at",
    Operation: "id payment_id kind purpose amount state reference refund_uuid attempts actor created_at ended_at",
    Posting: "id transaction checkout_uuid merchant_id account amount currency created_at",
    Refund: "id merchant_id checkout_id merchant_refund_ref amount status created_at settled_at",
    Change: "id checkout_id origin to actor created_at",
    Event: "id merchant_id type checkout_uuid body created_at valid_until superseded_at",
    ApiCall: "id merchant_id client_uuid checkout_uuid method path request_id status created_at",
}
# What becomes of a checkout: by the moves of states.ALLOWED, which the database guards.
FACTS = (
    "id",
    "status",
    "payment_id",
    "authorized_at",
    "capture_before",
    "captured_at",
    "voided_at",
    "void_reason",
    "expired_at",
    "refunded_amount",
    "last_refund_at",
)


class Order(NamedTuple):
    """What the rows of one order have in common."""

    checkout_uuid: UUID
    payment_uuid: UUID
    amount: int
    reference: str


class Book:
    """Tells one order after another. `rows` are the tables', `ends` what the checkouts become (FACTS)."""

    def __init__(self, merchant: Merchant) -> None:
        self.rows: Rows = {model: [] for model in COLUMNS}
        self.ends: list[tuple[Any, ...]] = []
        self._merchant = merchant.pk
        self._client = uuid7()

    def tell(self, at: datetime) -> None:
        """An order made at `at`, and what became of it."""
        (fate,) = random.choices(list(FATES), list(FATES.values()))
        checkout_uuid, payment_uuid = _id(at), _id(at)
        amount = self._buy(checkout_uuid, at)
        order = Order(checkout_uuid, payment_uuid, amount, f"A-{random.getrandbits(40):010x}")
        self._move(order, "", "created", at, path="")
        payable_until = at + settings.UNPAID_CHECKOUT_LIFETIME
        if fate == "expired":
            self._move(order, "created", "expired", payable_until)
            facts: dict[str, Any] = {"expired_at": payable_until}
        else:
            facts = self._sell(order, fate, at + _seconds(20, 300))
        self._checkout(order, at, payable_until, {"status": fate, **facts})

    def _buy(self, checkout_uuid: UUID, at: datetime) -> int:
        """Choose the lines; return their sum."""
        (count,) = random.choices(list(ITEMS), list(ITEMS.values()))
        amount = 0
        for position, (name, category, price, custom) in enumerate(random.sample(GOODS, count)):
            quantity = random.randint(1, 4) if category == "ticket" else 1
            amount += quantity * price
            line = (position, f"{category}-{price}", name, quantity, price, "GBP", category, custom)
            self.rows[Item].append((_id(at), checkout_uuid, *line))
        return amount

    def _sell(self, order: Order, fate: str, held_at: datetime) -> dict[str, Any]:
        """A card is held, and then captured, voided, or captured and refunded; return the checkout's facts."""
        ends = self._void(order, held_at) if fate == "voided" else self._capture(order, held_at)
        if fate == "refunded":
            ends |= self._refund(order, ends["captured_at"])
        owner = (order.payment_uuid, self._merchant, order.checkout_uuid, order.checkout_uuid)
        card = (f"tok_{order.payment_uuid.hex}", "Visa", "4242", order.reference)
        self.rows[Payment].append((*owner, order.amount, "GBP", fate, *card, held_at))
        self._operate(order, "authorize", held_at)
        self._move(order, "created", "authorized", held_at)
        capture_before = held_at + settings.HOLD
        self._emit(order, "authorized", held_at, capture_before, ends.get("captured_at", capture_before))
        hold = {"authorized_at": held_at, "capture_before": capture_before}
        return {"payment_id": order.payment_uuid, **hold, **ends}

    def _capture(self, order: Order, held_at: datetime) -> dict[str, Any]:
        at = held_at + _seconds(1, 60)
        self._post(order, self._operate(order, "capture", at), order.amount, at)
        self._move(order, "authorized", "captured", at, path=f"/{order.checkout_uuid}/capture")
        return {"captured_at": at}

    def _refund(self, order: Order, captured_at: datetime) -> dict[str, Any]:
        at = captured_at + _seconds(60, 40_000)
        settled_at, refund_uuid = at + _seconds(2, 600), _id(at)
        self._post(order, self._operate(order, "refund", settled_at, refund_uuid), -order.amount, settled_at)
        self._move(order, "captured", "refunding", at, path=f"/{order.checkout_uuid}/refund")
        self._move(order, "refunding", "refunded", settled_at)
        owner = (refund_uuid, self._merchant, order.checkout_uuid, f"r-{refund_uuid}")
        self.rows[Refund].append((*owner, order.amount, "settled", at, settled_at))
        return {"refunded_amount": order.amount, "last_refund_at": settled_at}

    def _void(self, order: Order, held_at: datetime) -> dict[str, Any]:
        lapses = random.random() < 0.5
        at = held_at + (settings.HOLD if lapses else _seconds(1, 60))
        self._operate(order, "void", at)
        path = None if lapses else f"/{order.checkout_uuid}/cancel"
        self._move(order, "authorized", "voided", at, path=path)
        self._emit(order, "voided", at)
        return {"voided_at": at, "void_reason": "auth_expired" if lapses else "merchant_cancel"}

    def _checkout(self, order: Order, at: datetime, payable_until: datetime, facts: dict[str, Any]) -> None:
        addresses = ("https://shop.example/thanks", "https://shop.example/basket")
        moved_at = max(moment for name, moment in facts.items() if name in MOMENTS)
        start = (order.checkout_uuid, self._merchant, order.reference, order.amount, "GBP", *addresses)
        self.rows[Checkout].append((*start, at, moved_at, payable_until))
        known = {"id": order.checkout_uuid, "void_reason": "", "refunded_amount": 0, **facts}
        self.ends.append(tuple(known.get(name) for name in FACTS))

    def _operate(self, order: Order, kind: str, at: datetime, refund_uuid: UUID | None = None) -> UUID:
        key = _id(at)
        purpose = "payment" if refund_uuid is None else "refund_part"
        act = (kind, purpose, order.amount, "succeeded", str(key), refund_uuid, 1, "pump", at, at)
        self.rows[Operation].append((key, order.payment_uuid, *act))
        return key

    def _post(self, order: Order, operation_uuid: UUID, incoming: int, at: datetime) -> None:
        owner = (operation_uuid, order.checkout_uuid, self._merchant)
        for account, amount in (("provider", incoming), ("merchant", -incoming)):
            self.rows[Posting].append((_id(at), *owner, account, amount, "GBP", at))

    def _move(self, order: Order, origin: str, to: str, at: datetime, *, path: str | None = None) -> None:
        """A line of history, and the API call that made it, if one did."""
        actor = "pump" if path is None else f"client:{self._client}"
        self.rows[Change].append((_id(at), order.checkout_uuid, origin, to, actor, at))
        if path is not None:
            call_uuid, status = _id(at), {"created": 201, "refunding": 204}.get(to, 200)
            owner = (call_uuid, self._merchant, self._client, order.checkout_uuid)
            address = f"/api/merchant/v1/checkouts{path}"
            self.rows[ApiCall].append((*owner, "POST", address, f"req_{call_uuid.hex}", status, at))

    def _emit(
        self,
        order: Order,
        status: str,
        at: datetime,
        until: datetime | None = None,
        ended: datetime | None = None,
    ) -> None:
        event_uuid, kind = _id(at), f"checkout.{status}"
        envelope = {"id": event_uuid, "type": kind, "api_version": API_VERSION, "created_at": clock.iso(at)}
        told = {"checkout_uuid": order.checkout_uuid, "merchant_order_id": order.reference, "status": status}
        body = orjson.dumps({**envelope, "data": told})
        self.rows[Event].append(
            (event_uuid, self._merchant, kind, order.checkout_uuid, body, at, until, ended)
        )


MOMENTS = {"expired_at", "captured_at", "voided_at", "last_refund_at"}  # of a checkout's last move


def _id(at: datetime) -> UUID:
    """A UUIDv7 made at that moment: what is made together lies together in every index."""
    return uuid7(nanoseconds=int(at.timestamp() * 1_000_000) * 1000)


def _seconds(minimum: int, maximum: int) -> timedelta:
    return timedelta(seconds=random.uniform(minimum, maximum))
