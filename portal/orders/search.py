"""The search for checkouts. The list and its CSV file share its search text and filters."""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django import forms
from django.db.models import Model, Q, QuerySet

from checkout.models import ApiCall, Checkout
from checkout.states import Status, VoidReason
from payments import money
from payments.models import Merchant, Payment
from portal.dashboard import merchant_tasks

Row = TypeVar("Row", bound=Model)

MAX_MATCHES = 1000  # the maximum number of matching rows for each kind of id that the text can be
MAX_TEXT = 255
THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3}){1,3}(\.[0-9]{1,3})?")
AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{1,3}|,[0-9]{1,2})?")
FIRST_YEAR, LAST_YEAR = 2000, 2099

STATES: tuple[tuple[str, str], ...] = (
    ("", "Any"),
    ("created", "Not paid yet"),
    ("authorized", "Held"),
    ("captured", "Captured"),
    ("lapsed", "Voided, hold lapsed"),
    ("cancelled", "Voided, you cancelled"),
    ("expired", "Expired"),
    ("refunding", "Refunding"),
    ("refunded", "Refunded"),
    ("refund_failed", "Refund failed"),
)


def check_year(moment: date) -> None:
    """Raise ValidationError if the year of a date or a time is not from FIRST_YEAR to LAST_YEAR."""
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise forms.ValidationError("Write a day of this century.")


class Days(forms.Form):
    """A filter by the first and the last day. Both are optional."""

    since = forms.DateField(required=False, validators=[check_year])
    until = forms.DateField(required=False, validators=[check_year])


class Filters(Days):
    """The list's filters, all of them optional."""

    q = forms.CharField(required=False, max_length=MAX_TEXT)
    state = forms.ChoiceField(required=False, choices=STATES)
    at_least = forms.CharField(required=False, max_length=20)

    def clean_at_least(self) -> Decimal | None:
        text = self.cleaned_data["at_least"]
        if not text:
            return None
        bare = "".join(sign for sign in text if not sign.isspace() and unicodedata.category(sign) != "Sc")
        if THOUSANDS.fullmatch(bare):
            return Decimal(bare.replace(",", ""))
        if AMOUNT.fullmatch(bare):
            return Decimal(bare.replace(",", "."))
        raise forms.ValidationError("Write an amount, such as 20.00.")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        since, until = values.get("since"), values.get("until")
        if since and until and since > until:
            self.add_error("until", "This day is before the first day.")
        return values


def filter_texts(form: forms.Form) -> dict[str, str]:
    """Return the filters in a valid form as texts for the audit log, without empty filters."""
    return {name: str(value) for name, value in form.cleaned_data.items() if value}


@dataclass(frozen=True)
class Chip:
    """An active filter: its label, and the query parameters that remove it."""

    words: str
    parts: dict[str, str]


def find_checkouts(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[Checkout]:
    """Return the merchant's checkouts that match the cleaned filters, without an order."""
    rows = Checkout.objects.filter(merchant=merchant)
    if filters.get("q"):
        rows = rows.filter(pk__in=_find_ids(merchant, filters["q"].strip()))
    if filters.get("state"):
        rows = rows.filter(_state_condition(merchant, filters["state"]))
    if filters.get("at_least"):
        rows = rows.filter(_minimum_condition(filters["at_least"]))
    return filter_by_days(rows, merchant, filters)


def filter_by_days(
    rows: QuerySet[Row], merchant: Merchant, filters: dict[str, Any], *, key: str = "created_at"
) -> QuerySet[Row]:
    """Return the rows whose time `key` is between the first and the last day, in the merchant's time zone."""
    zone = ZoneInfo(merchant.time_zone)
    if filters.get("since"):
        rows = rows.filter(**{f"{key}__gte": datetime.combine(filters["since"], time(), zone)})
    if filters.get("until"):
        after = filters["until"] + timedelta(days=1)
        rows = rows.filter(**{f"{key}__lt": datetime.combine(after, time(), zone)})
    return rows


def active_filters(filters: dict[str, Any], currencies: Collection[str] = ()) -> list[Chip]:
    """Return the active filters as chips.

    If all rows on the page have the same currency, the amount shows it. `currencies` are the rows'
    currencies.
    """
    active = []
    if filters.get("q"):
        active.append(Chip(f"“{filters['q']}”", {"q": ""}))
    if filters.get("state"):
        active.append(Chip(dict(STATES)[filters["state"]], {"state": ""}))
    since, until = filters.get("since"), filters.get("until")
    if since or until:
        active.append(Chip(_days_words(since, until), {"since": "", "until": ""}))
    if filters.get("at_least"):
        active.append(Chip(f"{_amount_words(filters['at_least'], currencies)} or more", {"at_least": ""}))
    return active


def _amount_words(value: Decimal, currencies: Collection[str]) -> str:
    minor = money.parse(str(value), *currencies) if len(currencies) == 1 else None
    return str(value) if minor is None else money.display(minor, *currencies).removesuffix(".00")


def _days_words(since: Any, until: Any) -> str:
    def day(date: Any) -> str:
        return f"{date.day} {date:%b}"

    if since and until:
        return day(since) if since == until else f"{day(since)} to {day(until)}"
    return f"since {day(since)}" if since else f"until {day(until)}"


def _find_ids(merchant: Merchant, text: str) -> set[UUID]:
    """Return the ids of the checkouts that match the search text. Each possible meaning needs one index look-up.

    The text can be the start of an order id in upper or lower case, a request id, the last four digits of a
    card, or a checkout's UUID. Rule portal.search.
    """
    checkout_uuids: set[UUID] = set(
        _ids_of(Checkout.objects.filter(merchant=merchant, merchant_order_id__istartswith=text))
    )
    calls = ApiCall.objects.filter(merchant=merchant, request_id=text, checkout_uuid__isnull=False)
    checkout_uuids.update(calls.values_list("checkout_uuid", flat=True)[:MAX_MATCHES])  # type: ignore[arg-type]  # not null
    if len(text) == 4 and text.isdecimal():
        cards = Payment.objects.filter(merchant=merchant, card_last4=text).order_by("-created_at")
        checkout_uuids.update(cards.values_list("checkout_uuid", flat=True)[:MAX_MATCHES])
    uuid = parse_uuid(text)
    if uuid:
        checkout_uuids.update(_ids_of(Checkout.objects.filter(merchant=merchant, pk=uuid)))
    return checkout_uuids


def _ids_of(rows: QuerySet[Checkout]) -> Iterable[UUID]:
    return rows.order_by("-created_at").values_list("pk", flat=True)[:MAX_MATCHES]


def parse_uuid(text: str) -> UUID | None:
    """Return the text as a UUID, or None if it is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        return None


def _state_condition(merchant: Merchant, state: str) -> Q:
    if state == "lapsed":
        return Q(status=Status.VOIDED, void_reason=VoidReason.AUTH_EXPIRED)
    if state == "cancelled":
        return Q(status=Status.VOIDED, void_reason=VoidReason.MERCHANT_CANCEL)
    if state == "refund_failed":
        return Q(pk__in=merchant_tasks.failed_refunds(merchant=merchant).values("checkout"))
    return Q(status=state)


def _minimum_condition(value: Decimal) -> Q:
    """Return the condition that an order's amount is at least `value`, such as 20 pounds or 20 yen."""
    unusual: dict[int, list[str]] = {0: [], 3: []}
    for currency in money.currencies():
        if money.minor_digits(currency) in unusual:
            unusual[money.minor_digits(currency)].append(currency)
    condition = Q(amount__gte=value * 100) & ~Q(currency__in=unusual[0] + unusual[3])
    for digits, names in unusual.items():
        condition |= Q(amount__gte=value * 10**digits, currency__in=names)
    return condition
