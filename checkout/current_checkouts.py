"""Reads of checkouts as they are now: a late one lapses or expires first (rule lapse.whoever)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from checkout import expiry, states
from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_ASKED, SHARE_PAID, Status
from config.lib import clock
from config.lib.database import replica
from config.lib.prepared import Prepared
from payments import operator_stops
from payments.models import Merchant, Operation

SOON = timedelta(seconds=30)


def with_read_at(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Add `read_at` to each row: the database's time of the query. `one` and `read_at` need it."""
    return rows.annotate(read_at=Now())


def one(rows: Prepared[Checkout], checkout_uuid: UUID, *more: UUID) -> Checkout:
    """Return a checkout of a query `with_read_at`. A late one lapses or expires first and is read again.

    The query's first parameter is the checkout's id. Raises Checkout.DoesNotExist.
    """
    checkout: Any = rows.get(checkout_uuid, *more)
    if checkout.has_lapsed(checkout.read_at) or checkout.has_expired(checkout.read_at):
        expiry.expire_one_if_due(checkout_uuid)
        return rows.get(checkout_uuid, *more)
    return cast("Checkout", checkout)


def read_at(checkout: Any) -> datetime:
    """Return the database's time at which a query `with_read_at` read the checkout."""
    return cast("datetime", checkout.read_at)


def actions(checkout: Checkout, *, open_kind: str | None, is_disputed: bool) -> list[str]:
    """Return the actions that the merchant may take now on a checkout of a query `with_read_at`.

    An action that would be refused is left out. The list is empty while a card operation is open, of
    `open_kind`, and after a deadline that has not been acted on yet. There is no refund if a dispute rules it
    out, and no capture while the merchant is stopped. Rule read.actions.
    """
    now = read_at(checkout)
    if open_kind or checkout.has_lapsed(now) or checkout.has_expired(now):
        return []
    allowed = states.actions(checkout.status)
    is_refused = {
        "refund": is_disputed,
        "capture": "capture" in allowed and operator_stops.is_stopped(checkout.merchant_id),
    }
    return [action for action in allowed if not is_refused.get(action)]


def shares(checkout: Checkout) -> list[PaymentRequest]:
    """Return the mates' shares of an order, by position. Only a split order has shares."""
    return _SHARES.all(checkout.pk) if checkout.has_mates else []


_SHARES = Prepared(lambda pk: PaymentRequest.objects.filter(checkout=pk).order_by("position"), UUID)


class Borne(NamedTuple):
    """Parts of a split order's amount, in minor units. `yours`, `out` and `paid` sum to the amount."""

    yours: int
    out: int
    paid: int

    @property
    def bears(self) -> int:
        """Amount that the lead bears now: all that no mate has paid."""
        return self.yours + self.out


def borne(checkout: Checkout, shares: Sequence[PaymentRequest]) -> Borne:
    """Return what the lead bears for good, what mates are still asked for, and what they have paid.

    A paid share counts as paid whether or not it has reached the lead's card. Rule share.borne.
    """
    out = sum(share.amount for share in shares if share.status in SHARE_ASKED)
    paid = sum(share.amount for share in shares if share.status in SHARE_PAID)
    return Borne(checkout.amount - out - paid, out, paid)


def fresh(rows: QuerySet[Checkout], found: Sequence[Checkout]) -> list[Checkout]:
    """Return the found rows, which were read `with_read_at`.

    Late ones lapse or expire first, and stay only if they still match.
    """
    late = [row.pk for row in found if row.has_lapsed(read_at(row)) or row.has_expired(read_at(row))]
    if not late:
        return list(found)
    with replica.primary():
        for checkout_uuid in late:
            expiry.expire_one_if_due(checkout_uuid)
        again = {row.pk: row for row in rows.filter(pk__in=late)}
    return [
        again[row.pk] if row.pk in late else row for row in found if row.pk not in late or row.pk in again
    ]


def needs_its_capture(merchant: Merchant, checkout_uuid: UUID) -> bool:
    """Return whether the checkout is held and its capture is urgent.

    A capture is urgent if no capture has begun yet, or if the hold ends within 30 seconds.
    """
    held = Checkout.objects.filter(pk=checkout_uuid, merchant=merchant, status=Status.AUTHORIZED)
    begun = Operation.objects.filter(payment__subject=OuterRef("pk"), kind=Operation.Kind.CAPTURE)
    return held.filter(Q(capture_before__lte=clock.now() + SOON) | ~Exists(begun)).exists()
