"""The operators' search, which finds an order and its payments by any id, reference or number.

Each look-up uses an index. A phone number must be complete. Rule operator.search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from checkout import current_checkouts
from checkout.models import ApiCall, Checkout, Customer, PaymentRequest, Refund
from config.lib.admin.lists import MAXIMUM
from config.lib.admin.lists import find_exact_matches as found_in
from payments.models import Booking, Discrepancy, Dispute, Merchant, Movement, Operation, Payment, Posting
from portal.backoffice import cases, lists, order_badges
from portal.backoffice.lists import OrderRow
from webhooks.models import Attempt, Delivery, Event

MAX_SHOWN = 50
MAX_TERM = 255
LAST4_DIGITS, PHONE_DIGITS = 4, 7
# The rows that a UUID can identify: a label, the model, the column of the UUID (indexed), and the column with
# the checkout's UUID.
KEYS: Sequence[tuple[str, type[Model], str, str]] = (
    ("uuid", Checkout, "pk", "pk"),
    ("share", PaymentRequest, "pk", "checkout"),
    ("payment", Payment, "pk", "checkout_uuid"),
    ("operation", Operation, "pk", "payment__checkout_uuid"),
    ("refund", Refund, "pk", "checkout"),
    ("dispute", Dispute, "pk", "checkout_uuid"),
    ("movement", Movement, "pk", "checkout_uuid"),
    ("booking", Booking, "pk", "checkout_uuid"),
    ("posting", Posting, "pk", "checkout_uuid"),
    ("posting", Posting, "transaction", "checkout_uuid"),
    ("event", Event, "pk", "checkout_uuid"),
    ("delivery", Delivery, "pk", "event__checkout_uuid"),
    ("attempt", Attempt, "pk", "delivery__event__checkout_uuid"),
    ("request", ApiCall, "pk", "checkout_uuid"),
)


@dataclass(frozen=True)
class SearchResults:
    """The results of a search: the newest orders first, and merchants.

    `is_number` is true if the term is a phone number. `is_cut` is true if older orders were found but are not
    shown.
    """

    orders: Sequence[OrderRow]
    merchants: Sequence[Merchant]
    is_number: bool = False
    is_cut: bool = False

    @property
    def by(self) -> str:
        """Return the kind of id that all orders were found by, such as "order id"; "" if the kinds differ."""
        return "" if self.ways else self.orders[0].by

    @property
    def ways(self) -> bool:
        """Return whether the orders were found by different kinds of ids, or there are no orders."""
        return len({row.by for row in self.orders}) != 1


def find_rows(term: str, request: HttpRequest) -> SearchResults:
    """Return the orders and merchants that match a term.

    An order matches if one of its ids or references, the last 4 digits of a card, or a phone number is equal
    to the term. A merchant matches if its name contains the term.
    """
    term = term.replace("\0", "").strip()[:MAX_TERM]
    found: dict[UUID, str] = {}
    for by, uuids in _find_orders(term):
        for uuid in uuids:
            found.setdefault(uuid, by)
    rows = current_checkouts.with_read_at(Checkout.objects.filter(pk__in=list(found)[:MAXIMUM]))
    read = list(rows.select_related("merchant").order_by("-created_at", "-pk")[: MAX_SHOWN + 1])
    newest = read[:MAX_SHOWN]
    cards: dict[UUID, list[Payment]] = {}
    for payment in Payment.objects.filter(checkout_uuid__in=[row.pk for row in newest]).order_by(
        "created_at"
    ):
        cards.setdefault(payment.checkout_uuid, []).append(payment)
    merchants = Merchant.objects.filter(name__icontains=term).order_by("name")[:MAX_SHOWN] if term else []
    more = order_badges.badges_of([row.pk for row in newest], request)
    orders = [lists.order(row, more.get(row.pk), found[row.pk], cards.get(row.pk, [])) for row in newest]
    return SearchResults(orders, list(merchants), is_number=_is_number(term), is_cut=len(read) > MAX_SHOWN)


def _find_orders(term: str) -> Iterator[tuple[str, Sequence[UUID]]]:
    """Yield what orders were found by, such as "order id", and the UUIDs of the orders found by it."""
    if not term:
        return
    if uuid := _parse_uuid(term):
        yield from _find_by_uuid(uuid)
    if _is_number(term):
        people = list(Customer.objects.filter(phone=term).values_list("pk", flat=True))
        led = Checkout.objects.filter(lead__in=people).order_by("-created_at")
        yield "lead’s number", list(led.values_list("pk", flat=True)[:MAXIMUM])
        for shares in (
            PaymentRequest.every.filter(mate__in=people),
            PaymentRequest.every.filter(phone=term),
        ):
            yield "mate’s number", list(shares.values_list("checkout", flat=True)[:MAXIMUM])
        return
    if len(term) == LAST4_DIGITS and term.isdecimal():
        keys = found_in(Payment, ["card_last4"], term, ["card_last4"])
        yield "card", list(Payment.objects.filter(pk__in=keys).values_list("checkout_uuid", flat=True))
    yield "order id", list(found_in(Checkout, ["merchant_order_id__iexact"], term, ["merchant_order_id"]))
    keys = found_in(Refund, ["merchant_refund_ref"], term, ["merchant_refund_ref"])
    yield "refund reference", list(Refund.objects.filter(pk__in=keys).values_list("checkout", flat=True))
    calls = ApiCall.objects.filter(pk__in=found_in(ApiCall, ["request_id"], term, ["request_id"]))
    yield "request id", [uuid for uuid in calls.values_list("checkout_uuid", flat=True) if uuid]
    payments = Payment.objects.filter(provider_reference=term)
    yield "provider’s reference", list(payments.values_list("checkout_uuid", flat=True))


def _find_by_uuid(uuid: UUID) -> Iterator[tuple[str, Sequence[UUID]]]:
    """Yield the orders of the rows with this UUID, then the orders of related discrepancies.

    The related discrepancies are the one with this UUID, and the open ones about the row with this UUID.
    """
    yield from _find_by_key(uuid)
    told: QuerySet[Any, Any] = cases.with_order_and_deadline(
        Discrepancy.objects.filter(Q(pk=uuid) | Q(subject=uuid, closed_at=None)).order_by()
    )
    # These are few: one discrepancy with this UUID, and one open discrepancy of each kind about the row.
    found = list(told.values_list("about", "subject"))
    yield "discrepancy", [about for about, _ in found if about is not None]
    for subject in {subject for _, subject in found} - {uuid, None}:
        yield from (("discrepancy", orders) for _, orders in _find_by_key(subject))


def _find_by_key(uuid: UUID) -> Iterator[tuple[str, Sequence[UUID]]]:
    for by, model, key, order in KEYS:
        rows = model._base_manager.filter(**{key: uuid}).order_by()
        yield by, [found for found in rows.values_list(order, flat=True) if found is not None]


def _parse_uuid(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None


def _is_number(term: str) -> bool:
    return term.startswith("+") and term[1:].isdecimal() and len(term) > PHONE_DIGITS
