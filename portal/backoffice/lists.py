"""The rows in the operators' lists of orders, discrepancies and merchants, and the words for the lists' filters.

The admin reads one page of rows, and this module adds what the list shows. It reads discrepancies again,
together with their orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models.functions import Now
from django.http import HttpRequest

from checkout import current_checkouts
from checkout.models import Checkout
from config.lib.admin import columns
from config.lib.admin.lists import NEWEST_SEARCHED, MerchantFilter
from payments import money
from payments.discrepancies import kinds
from payments.models import Discrepancy, Merchant, Payment
from portal.backoffice import ages, badges, cases, frame, order_badges
from portal.backoffice.cases import Case
from portal.badges import Badge

# The labels of filters, by field or by Django's title for the filter.
FILTERS = {
    "payments.discrepancy.kind": "What is wrong",
    "ask for marketing consent": "Asks for marketing consent",
    f"status, among the newest {NEWEST_SEARCHED:,}": "State",
}


@dataclass(frozen=True)
class Card:
    """A card that paid for an order, and the first payment with it.

    `words` names the card, and says how often the card paid if that was more than once.
    """

    words: str
    payment: UUID


@dataclass(frozen=True)
class OrderRow:
    """An order in a list.

    `found_by` is the kind of id through which a search has found the order, such as "order ID".
    """

    checkout: Checkout
    badge: Badge
    amount: str
    age: str
    second_badge: Badge | None = None
    found_by: str = ""
    cards: Sequence[Card] = ()


@dataclass(frozen=True)
class DiscrepancyRow:
    """A discrepancy in a list."""

    case: Case
    badge: Badge
    # The page on which an operator decides the discrepancy. It is "" if the discrepancy is closed, or if this
    # operator may not see that page.
    address: str


@dataclass(frozen=True)
class MerchantRow:
    """A merchant in a list, with its badge and the shop's host."""

    merchant: Any
    badge: Badge
    host: str = ""


def build_order_rows(checkouts: Sequence[Checkout], request: HttpRequest) -> list[OrderRow]:
    """Return the rows for a page of orders. The orders must be read with `current_checkouts.with_read_at`."""
    second_badges = order_badges.badges_of([checkout.pk for checkout in checkouts], request)
    return [build_order_row(checkout, second_badges.get(checkout.pk)) for checkout in checkouts]


def build_order_row(
    checkout: Checkout, second_badge: Badge | None, found_by: str = "", payments: Sequence[Payment] = ()
) -> OrderRow:
    """Return the row for an order. The order must be read with `current_checkouts.with_read_at`."""
    amount = money.display(checkout.amount, checkout.currency)
    age = ages.in_words(current_checkouts.read_at(checkout) - checkout.created_at)
    return OrderRow(
        checkout, badges.of_checkout(checkout), amount, age, second_badge, found_by, list_cards(payments)
    )


def list_cards(payments: Sequence[Payment]) -> list[Card]:
    """Return the cards with which the payments were made, each card once."""
    payments_by_card: dict[str, list[Payment]] = {}
    for payment in payments:
        words = f"{payment.card_brand or ''} {payment.card_last4 or 'no card'}".strip()
        payments_by_card.setdefault(words, []).append(payment)
    return [
        Card(f"{words}\N{NO-BREAK SPACE}×{len(rows)}" if len(rows) > 1 else words, rows[0].pk)
        for words, rows in payments_by_card.items()
    ]


def build_discrepancy_rows(
    discrepancies: Sequence[Discrepancy], request: HttpRequest
) -> list[DiscrepancyRow]:
    """Return the rows for a page of discrepancies, in the same order."""
    keys = [row.pk for row in discrepancies]
    rows = cases.with_order_and_deadline(Discrepancy.objects.filter(pk__in=keys)).annotate(read_at=Now())
    row_by_key = {row.pk: row for row in rows}
    ordered_rows = [row_by_key[key] for key in keys if key in row_by_key]
    operations_page_keys = _keys_on_operations_page() if frame.may_see_operations(request) else None
    may_see_orders = frame.may_see(request, "checkout.checkout")
    return [
        DiscrepancyRow(
            case,
            badges.of_discrepancy(case.discrepancy, case.age, is_old=case.is_old),
            ""
            if operations_page_keys is None or case.discrepancy.closed_at
            else _decision_address(case, operations_page_keys, may_see_orders=may_see_orders),
        )
        for case in [cases.build_case(row, row.read_at, None) for row in ordered_rows]
    ]


def _keys_on_operations_page() -> set[UUID]:
    """Return the keys of the open discrepancies that the operations page shows. One statement reads them."""
    rows = Discrepancy.objects.filter(closed_at=None).order_by("created_at")
    return set(rows.values_list("pk", flat=True)[: cases.MAX_SHOWN])


def _decision_address(case: Case, operations_page_keys: set[UUID], *, may_see_orders: bool) -> str:
    """Return the page on which an operator decides a discrepancy.

    It is the operations page if that page shows the discrepancy, else the order's page, else the
    discrepancy's page.
    """
    row = case.discrepancy
    if row.pk in operations_page_keys:
        return case.decided_at
    if may_see_orders and case.order_uuid:
        return f"{columns.page_address('checkout.checkout', case.order_uuid)}#case-{row.pk}"
    return columns.page_address(row._meta.label_lower, row.pk)


def build_merchant_rows(merchants: Sequence[Merchant], request: HttpRequest) -> list[MerchantRow]:
    """Return the rows for a page of merchants."""
    return [MerchantRow(row, badges.of_merchant(row), shop_host_of(row)) for row in merchants]


def shop_host_of(merchant: Any) -> str:
    """Return the shop's host, or "" if it is unknown. It distinguishes merchants that have the same name."""
    return str(urlsplit(merchant.shop_url).hostname or "") or next(iter(merchant.return_hosts), "")


def filter_title(spec: Any) -> str:
    """Return the label of a filter."""
    title, field = str(spec.title), getattr(spec, "field", None)
    field_label = f"{field.model._meta.label_lower}.{field.name}" if field else ""
    return FILTERS.get(field_label) or FILTERS.get(title, title[:1].upper() + title[1:])


def choice_words(label: str, name: str, choice: str) -> str:
    """Return the words for a choice in the filter by the field `name`. The list's badges use the same words."""
    return kinds.kind_named(choice).sentence if label == "payments.discrepancy" and name == "kind" else choice


def active_filters(changelist: Any) -> str:
    """Return the active filters of a list in words, such as "open only"."""
    filters = []
    for spec in changelist.filter_specs:
        for choice in list(spec.choices(changelist))[1:]:  # the first choice, "All", does not filter
            if choice.get("selected"):
                words = choice_label(spec, str(choice["display"]))
                is_name = isinstance(spec, MerchantFilter) or words.isupper()
                filters.append(words if is_name else words[:1].lower() + words[1:])
    return f"{', '.join(filters)} only" if filters else "some are on"


def choice_label(spec: Any, choice: str) -> str:
    """Return the words for a filter's choice. The list's badges use the same words.

    Filters that we have written ourselves have no field, and their choices stay unchanged.
    """
    field = getattr(spec, "field", None)
    return choice if field is None else choice_words(field.model._meta.label_lower, field.name, choice)
