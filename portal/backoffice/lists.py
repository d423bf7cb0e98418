"""The rows of the operators' lists of orders, discrepancies and merchants, and the words of their filters.

The admin reads one page of rows, and this module adds what the list shows. Discrepancies are read again,
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
from checkout.states import Status
from config.lib.admin import columns
from config.lib.admin.lists import NEWEST_SEARCHED, MerchantFilter
from payments import money
from payments.discrepancies import kinds
from payments.models import Discrepancy, Merchant, Operation, Payment
from portal.backoffice import ages, badges, cases, frame, order_badges
from portal.backoffice.cases import Case
from portal.badges import CHECKOUT, Badge
from webhooks.models import EventType

# The labels of filters, by the field or by Django's title of the filter.
FILTERS = {
    "payments.discrepancy.kind": "What is wrong",
    "ask for marketing consent": "Asks for marketing consent",
    f"status, among the newest {NEWEST_SEARCHED:,}": "State",
}
STATES = {str(state.label): CHECKOUT[state].words for state in Status}
OPERATION_STATES = {str(state.label): badges.OPERATION[state].words for state in Operation.State}
EVENT_TYPES = {str(kind.label): str(kind.value) for kind in EventType}


@dataclass(frozen=True)
class Card:
    """A card that paid for an order, and its first payment.

    `words` names the card, and says how often it paid if it paid more than once.
    """

    words: str
    payment: UUID


@dataclass(frozen=True)
class OrderRow:
    """An order in a list.

    `more` is a second badge. `by` says how a search has found the order, and `cards` are its cards.
    """

    checkout: Checkout
    badge: Badge
    amount: str
    age: str
    more: Badge | None = None
    by: str = ""
    cards: Sequence[Card] = ()


@dataclass(frozen=True)
class DiscrepancyRow:
    """A discrepancy in a list."""

    case: Case
    badge: Badge
    # The page on which an operator decides it; "" if it is closed, or if this operator may not see that page.
    address: str


@dataclass(frozen=True)
class MerchantRow:
    """A merchant in a list, with its badge and the shop's host."""

    merchant: Any
    badge: Badge
    host: str = ""


def orders(found: Sequence[Checkout], request: HttpRequest) -> list[OrderRow]:
    """Return the rows for one page of orders, which were read with `current_checkouts.with_read_at`."""
    more = order_badges.badges_of([row.pk for row in found], request)
    return [order(row, more.get(row.pk)) for row in found]


def order(row: Checkout, more: Badge | None, by: str = "", payments: Sequence[Payment] = ()) -> OrderRow:
    """Return the row for an order that was read with `current_checkouts.with_read_at`."""
    amount = money.display(row.amount, row.currency)
    age = ages.in_words(current_checkouts.read_at(row) - row.created_at)
    return OrderRow(row, badges.of_checkout(row), amount, age, more, by, cards(payments))


def cards(payments: Sequence[Payment]) -> list[Card]:
    """Return the cards of the payments, each card once."""
    found: dict[str, list[Payment]] = {}
    for payment in payments:
        words = f"{payment.card_brand or ''} {payment.card_last4 or 'no card'}".strip()
        found.setdefault(words, []).append(payment)
    return [
        Card(f"{words}\N{NO-BREAK SPACE}×{len(rows)}" if len(rows) > 1 else words, rows[0].pk)
        for words, rows in found.items()
    ]


def discrepancies(found: Sequence[Discrepancy], request: HttpRequest) -> list[DiscrepancyRow]:
    """Return the rows for one page of discrepancies, in the same order."""
    rows = cases.with_order_and_deadline(Discrepancy.objects.filter(pk__in=[row.pk for row in found]))
    named = {row.pk: row for row in rows.annotate(read_at=Now())}
    told = [cases.build_case(named[row.pk], named[row.pk].read_at, None) for row in found if row.pk in named]
    shown = _keys_on_operations_page() if frame.may_see_operations(request) else None
    may_see_orders = frame.may_see(request, "checkout.checkout")
    return [
        DiscrepancyRow(
            case,
            badges.of_discrepancy(case.discrepancy, case.age, is_old=case.is_old),
            ""
            if shown is None or case.discrepancy.closed_at
            else _decision_address(case, shown, may_see_orders=may_see_orders),
        )
        for case in told
    ]


def _keys_on_operations_page() -> set[UUID]:
    """Return the keys of the open discrepancies that the operations page shows, in one statement."""
    rows = Discrepancy.objects.filter(closed_at=None).order_by("created_at")
    return set(rows.values_list("pk", flat=True)[: cases.MAX_SHOWN])


def _decision_address(case: Case, shown: set[UUID], *, may_see_orders: bool) -> str:
    """Return the page on which a discrepancy is decided.

    It is the operations page if the discrepancy is `shown` there, else its order's page, else its own page.
    """
    row = case.discrepancy
    if row.pk in shown:
        return case.decided_at
    if may_see_orders and case.order_uuid:
        return f"{columns.page_address('checkout.checkout', case.order_uuid)}#case-{row.pk}"
    return columns.page_address(row._meta.label_lower, row.pk)


def merchants(found: Sequence[Merchant], request: HttpRequest) -> list[MerchantRow]:
    """Return the rows for one page of merchants."""
    return [MerchantRow(row, badges.of_merchant(row), host_of(row)) for row in found]


def host_of(merchant: Any) -> str:
    """Return the shop's host, which distinguishes merchants with the same name, or "" if it is unknown."""
    return str(urlsplit(merchant.shop_url).hostname or "") or next(iter(merchant.return_hosts), "")


def title_of(spec: Any) -> str:
    """Return the label of a filter."""
    title, field = str(spec.title), getattr(spec, "field", None)
    of_field = f"{field.model._meta.label_lower}.{field.name}" if field else ""
    return FILTERS.get(of_field) or FILTERS.get(title, title[:1].upper() + title[1:])


def choice_words(label: str, name: str, shown: str) -> str:
    """Return the words for a choice of the filter by the field `name`, in the words of the list's badges."""
    if label == "checkout.checkout":
        return STATES.get(shown, shown)
    if label == "payments.operation" and name == "state":
        return OPERATION_STATES.get(shown, shown)
    if label == "webhooks.event" and name == "type":
        return EVENT_TYPES.get(shown, shown)
    return kinds.kind_named(shown).sentence if label == "payments.discrepancy" and name == "kind" else shown


def active_filters(listed: Any) -> str:
    """Return the active filters of a list in words, such as "open only"."""
    found = []
    for spec in listed.filter_specs:
        for choice in list(spec.choices(listed))[1:]:  # the first choice, "All", does not filter
            if choice.get("selected"):
                words = choice_label(spec, str(choice["display"]))
                is_name = isinstance(spec, MerchantFilter) or words.isupper()
                found.append(words if is_name else words[:1].lower() + words[1:])
    return f"{', '.join(found)} only" if found else "some are on"


def choice_label(spec: Any, shown: str) -> str:
    """Return the words for a choice of a filter, in the words of the list's badges.

    Filters that we have written ourselves have no field, and their choices stay unchanged.
    """
    field = getattr(spec, "field", None)
    return shown if field is None else choice_words(field.model._meta.label_lower, field.name, shown)
