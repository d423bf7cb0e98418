"""The operators' search. It finds an order and its payments by any id, reference or number.

Each look-up uses an index. A phone number must be complete. Rule operator.search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from checkout import current_checkouts
from checkout.models import ApiCall, Checkout, Customer, PaymentRequest, Refund
from config.lib.admin.lists import MAXIMUM, find_exact_matches
from payments.models import Booking, Discrepancy, Dispute, Merchant, Movement, Operation, Payment, Posting
from portal.backoffice import cases, lists, order_badges
from portal.backoffice.lists import MerchantRow, OrderRow
from webhooks.models import Attempt, Delivery, Event

MAX_SHOWN = 50
MAX_TERM = 255
LAST4_DIGITS, PHONE_DIGITS = 4, 7
# The rows that a UUID can identify: a label, the model, the column that has the UUID (indexed), and the column
# with the checkout's UUID.
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
    """The results of a search: orders, with the newest first, and merchants.

    `is_number` is true if the term is a phone number. `is_cut` is true if older orders were found but are not
    shown.
    """

    orders: Sequence[OrderRow]
    merchants: Sequence[MerchantRow]
    is_number: bool = False
    is_cut: bool = False

    @property
    def found_by(self) -> str:
        """Return the kind of id that matched all orders, such as "order ID". Return "" if the kinds differ."""
        return "" if self.has_mixed_id_kinds else self.orders[0].found_by

    @property
    def has_mixed_id_kinds(self) -> bool:
        """Return whether the orders matched different kinds of ids. This is also true if there are no orders."""
        return len({row.found_by for row in self.orders}) != 1


def find_rows(term: str, request: HttpRequest) -> SearchResults:
    """Return the orders and merchants that match a term.

    An order matches if the term is one of its ids or references, the last 4 digits of one of its cards, or
    one of its phone numbers. A merchant matches if its name contains the term.
    """
    term = term.replace("\0", "").strip()[:MAX_TERM]
    id_kinds: dict[UUID, str] = {}
    for id_kind, uuids in _find_orders(term):
        for uuid in uuids:
            id_kinds.setdefault(uuid, id_kind)
    rows = current_checkouts.with_read_at(Checkout.objects.filter(pk__in=list(id_kinds)[:MAXIMUM]))
    checkouts = list(rows.select_related("merchant").order_by("-created_at", "-pk")[: MAX_SHOWN + 1])
    newest = checkouts[:MAX_SHOWN]
    merchants = _find_merchants(term, request) if term else []
    uuids = [row.pk for row in newest]
    payments, second_badges = _payments_by_order(uuids), order_badges.badges_of(uuids, request)
    orders = [
        lists.build_order_row(row, second_badges.get(row.pk), id_kinds[row.pk], payments.get(row.pk, []))
        for row in newest
    ]
    return SearchResults(orders, merchants, is_number=_is_number(term), is_cut=len(checkouts) > MAX_SHOWN)


def _find_merchants(term: str, request: HttpRequest) -> list[MerchantRow]:
    rows = admin.site.get_model_admin(Merchant).get_queryset(request).filter(name__icontains=term)
    return lists.build_merchant_rows(list(rows.order_by("name", "-created_at")[:MAX_SHOWN]), request)


def _payments_by_order(uuids: Sequence[UUID]) -> dict[UUID, list[Payment]]:
    payments: dict[UUID, list[Payment]] = {}
    for payment in Payment.objects.filter(checkout_uuid__in=uuids).order_by("created_at"):
        payments.setdefault(payment.checkout_uuid, []).append(payment)
    return payments


def _find_orders(term: str) -> Iterator[tuple[str, Sequence[UUID]]]:
    """For each kind of id, such as "order ID", yield the kind and the UUIDs of the orders that the term identifies."""
    if not term:
        return
    if uuid := _parse_uuid(term):
        yield from _find_by_uuid(uuid)
    if _is_number(term):
        yield from _find_by_phone_number(term)
        return
    if len(term) == LAST4_DIGITS and term.isdecimal():
        keys = find_exact_matches(Payment, ["card_last4"], term, ["card_last4"])
        yield "card", list(Payment.objects.filter(pk__in=keys).values_list("checkout_uuid", flat=True))
    yield (
        "order ID",
        list(find_exact_matches(Checkout, ["merchant_order_id__iexact"], term, ["merchant_order_id"])),
    )
    keys = find_exact_matches(Refund, ["merchant_refund_ref"], term, ["merchant_refund_ref"])
    yield "refund reference", list(Refund.objects.filter(pk__in=keys).values_list("checkout", flat=True))
    calls = ApiCall.objects.filter(pk__in=find_exact_matches(ApiCall, ["request_id"], term, ["request_id"]))
    yield "request ID", [uuid for uuid in calls.values_list("checkout_uuid", flat=True) if uuid]
    payments = Payment.objects.filter(provider_reference=term)
    yield "provider’s reference", list(payments.values_list("checkout_uuid", flat=True))


def _find_by_phone_number(number: str) -> Iterator[tuple[str, Sequence[UUID]]]:
    customers = list(Customer.objects.filter(phone=number).values_list("pk", flat=True))
    lead_checkouts = Checkout.objects.filter(lead__in=customers).order_by("-created_at")
    yield "lead’s number", list(lead_checkouts.values_list("pk", flat=True)[:MAXIMUM])
    for shares in (
        PaymentRequest.every.filter(mate__in=customers),
        PaymentRequest.every.filter(phone=number),
    ):
        yield "mate’s number", list(shares.values_list("checkout", flat=True)[:MAXIMUM])


def _find_by_uuid(uuid: UUID) -> Iterator[tuple[str, Sequence[UUID]]]:
    """Yield the orders of the rows with this UUID, then the orders of related discrepancies.

    A discrepancy is related if it has this UUID. It is also related if it is open and about the row with this
    UUID.
    """
    yield from _find_by_key(uuid)
    discrepancies: QuerySet[Any, Any] = cases.with_order_and_deadline(
        Discrepancy.objects.filter(Q(pk=uuid) | Q(subject=uuid, closed_at=None)).order_by()
    )
    # At most a few rows match: one discrepancy with this UUID, and one open discrepancy of each kind about the
    # row.
    references = list(discrepancies.values_list("order_uuid", "subject"))
    yield "discrepancy", [order_uuid for order_uuid, _ in references if order_uuid is not None]
    for subject in {subject for _, subject in references} - {uuid, None}:
        yield from (("discrepancy", orders) for _, orders in _find_by_key(subject))


def _find_by_key(uuid: UUID) -> Iterator[tuple[str, Sequence[UUID]]]:
    for id_kind, model, key, order_column in KEYS:
        rows = model._base_manager.filter(**{key: uuid}).order_by()
        yield (
            id_kind,
            [
                order_uuid
                for order_uuid in rows.values_list(order_column, flat=True)
                if order_uuid is not None
            ],
        )


def _parse_uuid(term: str) -> UUID | None:
    try:
        return UUID(term)
    except ValueError:
        return None


def _is_number(term: str) -> bool:
    return term.startswith("+") and term[1:].isdecimal() and len(term) > PHONE_DIGITS
