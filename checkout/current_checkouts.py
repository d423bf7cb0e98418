"""Functions that read only up-to-date checkouts.

If the deadline of a checkout has passed, the function ends the checkout first: a held one lapses, an unpaid one
expires. Rule lapse.whoever.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from checkout import expiry, states
from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_OUTSTANDING, SHARE_PAID, Status
from config.lib import clock
from config.lib.database import replica
from config.lib.prepared import Prepared
from payments import operator_stops
from payments.models import Merchant, Operation

URGENT_PERIOD = timedelta(seconds=30)


def with_read_at(rows: QuerySet[Checkout]) -> QuerySet[Checkout]:
    """Add `read_at` to each row: the time of the query by the database's clock.

    The other functions of this module need it.
    """
    return rows.annotate(read_at=Now())


def read_one(read: Callable[..., Checkout], checkout_uuid: UUID, *more: UUID) -> Checkout:
    """Return one checkout. If its deadline has passed, end the checkout first and read it again.

    `read` reads the row of a `with_read_at` query by the checkout's id and `more`. Raises Checkout.DoesNotExist.
    """
    checkout: Any = read(checkout_uuid, *more)
    if checkout.has_lapsed(checkout.read_at) or checkout.has_expired(checkout.read_at):
        expiry.expire_one_if_due(checkout_uuid)
        return read(checkout_uuid, *more)
    return cast("Checkout", checkout)


def read_at(checkout: Any) -> datetime:
    """Return the time of the query that read a checkout. The row must come from `with_read_at`."""
    return cast("datetime", checkout.read_at)


def available_actions(checkout: Checkout, *, open_kind: str | None, is_disputed: bool) -> list[str]:
    """Return the actions that the merchant may take now on a checkout. The row must come from `with_read_at`.

    `open_kind` is the kind of the open card operation, or None. No action is allowed while an operation is open, or
    after the deadline of a checkout that has not ended yet. A refund is not allowed if `is_disputed` is true. A capture
    is not allowed while an operator's stop is in force. Rule read.actions.
    """
    now = read_at(checkout)
    if open_kind or checkout.has_lapsed(now) or checkout.has_expired(now):
        return []
    allowed = states.allowed_actions(checkout.status)
    is_refused = {
        "refund": is_disputed,
        "capture": "capture" in allowed and operator_stops.is_stopped(checkout.merchant_id),
    }
    return [action for action in allowed if not is_refused.get(action)]


def shares_of(checkout: Checkout) -> list[PaymentRequest]:
    """Return the mates' shares of an order, sorted by position. The list is empty if the cost is not split."""
    return _SHARES.all(checkout.pk) if checkout.has_mates else []


_SHARES = Prepared(lambda pk: PaymentRequest.objects.filter(checkout=pk).order_by("position"), UUID)


class Split(NamedTuple):
    """The parts of a split order's amount, in minor units. Their sum is the amount.

    `paid` is the sum of the shares that mates have paid. `out` is the sum of the shares that mates were asked
    to pay but have not paid. `yours` is the rest, which is the lead's own part.
    """

    yours: int
    out: int
    paid: int

    @property
    def bears(self) -> int:
        """The amount that the lead bears now: everything that the mates have not paid."""
        return self.yours + self.out


def split_of(checkout: Checkout, shares: Sequence[PaymentRequest]) -> Split:
    """Return how the amount of a split order is currently divided between the lead and the mates.

    A paid share counts as paid even if the lead has not been reimbursed yet. Rule share.borne.
    """
    out = sum(share.amount for share in shares if share.status in SHARE_OUTSTANDING)
    paid = sum(share.amount for share in shares if share.status in SHARE_PAID)
    return Split(checkout.amount - out - paid, out, paid)


def refresh_late(rows: QuerySet[Checkout], checkouts: Sequence[Checkout]) -> list[Checkout]:
    """Return the current state of these checkouts.

    `checkouts` are results of the query `rows`, which must have `with_read_at`. If the deadline of a checkout
    has passed, the checkout is ended first. It stays in the list only if it still matches `rows`.
    """
    late = [row.pk for row in checkouts if row.has_lapsed(read_at(row)) or row.has_expired(read_at(row))]
    if not late:
        return list(checkouts)
    with replica.use_primary():
        for checkout_uuid in late:
            expiry.expire_one_if_due(checkout_uuid)
        refreshed = {row.pk: row for row in rows.filter(pk__in=late)}
    return [
        refreshed[row.pk] if row.pk in late else row
        for row in checkouts
        if row.pk not in late or row.pk in refreshed
    ]


def needs_urgent_capture(merchant: Merchant, checkout_uuid: UUID) -> bool:
    """Return whether the checkout is held and its capture is urgent.

    A capture is urgent if no capture of the checkout has begun yet, or if the hold ends within 30 seconds.
    """
    held = Checkout.objects.filter(pk=checkout_uuid, merchant=merchant, status=Status.AUTHORIZED)
    begun = Operation.objects.filter(payment__subject=OuterRef("pk"), kind=Operation.Kind.CAPTURE)
    return held.filter(Q(capture_before__lte=clock.now() + URGENT_PERIOD) | ~Exists(begun)).exists()
