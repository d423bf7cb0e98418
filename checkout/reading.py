"""Reading what is true at this moment: a passed deadline is found first."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from checkout import deadlines
from checkout.models import Checkout
from checkout.states import Status
from config.lib import clock
from payments.models import Merchant

SOON = timedelta(seconds=30)


def one(rows: QuerySet[Checkout], checkout_uuid: UUID) -> Checkout:
    """Return the checkout among `rows`, lapsed or expired first if it is late. Raises Checkout.DoesNotExist."""
    checkout = rows.annotate(read_at=Now()).get(pk=checkout_uuid)
    if checkout.has_lapsed(checkout.read_at) or checkout.has_expired(checkout.read_at):
        deadlines.keep_of(checkout_uuid)
        checkout = rows.annotate(read_at=Now()).get(pk=checkout_uuid)
    return checkout


def fresh(rows: QuerySet[Checkout], found: Sequence[Checkout]) -> list[Checkout]:
    """Return what was found, with what is late lapsed or expired and read again through the same filter."""
    now = clock.now()
    late = [row.pk for row in found if row.has_lapsed(now) or row.has_expired(now)]
    if not late:
        return list(found)
    for checkout_uuid in late:
        deadlines.keep_of(checkout_uuid)
    again = {row.pk: row for row in rows.filter(pk__in=late)}
    return [
        again[row.pk] if row.pk in late else row for row in found if row.pk not in late or row.pk in again
    ]


def ends_soon(merchant: Merchant, checkout_uuid: UUID) -> bool:
    """Return whether the checkout is held and its hold ends within 30 seconds."""
    held = Checkout.objects.filter(pk=checkout_uuid, merchant=merchant, status=Status.AUTHORIZED)
    return held.filter(capture_before__lte=clock.now() + SOON).exists()
