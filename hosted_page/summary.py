"""The summary of an order that every page shows, and how pages write cards, days and times."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID
from zoneinfo import ZoneInfo

from babel.dates import format_datetime, get_timezone_location
from django.urls import reverse
from django.utils.translation import get_language, to_locale
from django.utils.translation import gettext as _

from checkout.models import Checkout, Item
from config.lib import clock
from hosted_page import brand
from hosted_page.payment_target import PaymentTarget, lead_name
from payments import money
from payments.models import Payment


@dataclass(frozen=True)
class Line:
    """A line of the bill."""

    name: str
    detail: str
    price: str


@dataclass(frozen=True)
class Summary:
    """The order as every page shows it."""

    merchant_name: str
    merchant_initial: str
    brand_css: str
    order_id: str
    order_label: str
    due: str
    title: str
    subtitle: str
    lines: list[Line]
    total_label: str
    total: str
    support_url: str
    terms_url: str
    privacy_url: str


def of(target: PaymentTarget) -> Summary:
    """Return the order's summary, for its lead or for a mate who is asked for a share."""
    checkout = target.checkout
    merchant, items = checkout.merchant, checkout.bill
    name = lead_name(checkout)
    return Summary(
        merchant_name=merchant.name,
        merchant_initial=merchant.name[:1].upper(),
        brand_css=_sheet(merchant.pk, merchant.brand_version),
        order_id=checkout.merchant_order_id,
        order_label=_("{name}’s order").format(name=name) if target.share else _("Order"),
        due=money.display(target.amount, checkout.currency),
        title=items[0].name,
        subtitle=_when(items[0]),
        lines=[line(item, checkout.currency) for item in items],
        total_label=_("Total, paid by {name}").format(name=name) if target.share else _("Total"),
        total=money.display(checkout.amount, checkout.currency),
        support_url=merchant.support_url,
        terms_url=merchant.terms_url,
        privacy_url=merchant.privacy_url,
    )


@lru_cache(1024)
def _sheet(merchant_uuid: UUID, version: int) -> str:
    """Return the address of a merchant's style sheet."""
    return f"{reverse('brand_css', args=[merchant_uuid, version])}?{brand.TOKENS_VERSION}"


def line(item: Item, currency: str) -> Line:
    """Return the line of an item, with its unit price if there are several."""
    unit = money.display(item.unit_price, currency)
    detail = f"{item.quantity} × {unit}" if item.quantity > 1 else ""
    return Line(item.name, detail, money.display(item.quantity * item.unit_price, currency))


def card(payment: Payment | None, *, is_theirs: bool) -> str:
    """Return a card as a part of a sentence, which names it only to its owner (`is_theirs`)."""
    if payment is None or not is_theirs:
        return _("the card")
    return _("your {brand} ending {last4}").format(brand=payment.card_brand, last4=payment.card_last4)


def card_name(payment: Payment | None) -> str:
    """Return a card's brand and last digits, "" for none."""
    if payment is None:
        return ""
    return _("{brand} ending {last4}").format(brand=payment.card_brand, last4=payment.card_last4)


def _when(item: Item) -> str:
    """Return a ticket's date in its own place's time zone, "" unless the merchant gave both."""
    custom = item.custom_data or {}
    start, zone = custom.get("event_start"), custom.get("time_zone", "UTC")
    if not isinstance(start, str) or zone not in clock.zones():
        return ""
    try:
        at = datetime.fromisoformat(start).astimezone(ZoneInfo(zone))
    except (ValueError, OverflowError):
        return ""
    place = get_timezone_location(zone, locale=_locale(), return_city=True) if zone != "UTC" else "UTC"
    date = format_datetime(at, "EEE d MMMM y, HH:mm", locale=_locale())
    return _("{date}, {place} time").format(date=date, place=place) if place != "UTC" else f"{date} UTC"


def _locale() -> str:
    """Return the active language as Babel names it."""
    return to_locale(get_language() or "en")


def zone_of(checkout: Checkout) -> ZoneInfo:
    """Return the order's time zone: its ticket's, else UTC."""
    zone = (checkout.bill[0].custom_data or {}).get("time_zone")
    return ZoneInfo(zone if isinstance(zone, str) and zone in clock.zones() else "UTC")


def clock_time(at: datetime, zone: ZoneInfo) -> str:
    """Return a time of day with seconds, marked UTC if no better zone is known."""
    shown = f"{at.astimezone(zone):%H:%M:%S}"
    return f"{shown} UTC" if zone.key == "UTC" else shown


def day(at: datetime | None, checkout: Checkout) -> str:
    """Return a day with its time to the minute, "" for none."""
    if at is None:
        return ""
    zone = zone_of(checkout)
    date = format_datetime(at.astimezone(zone), "EEE d MMMM, HH:mm", locale=_locale())
    return f"{date} UTC" if zone.key == "UTC" else date


def full_time(at: datetime, zone: ZoneInfo) -> str:
    """Return a date in full with its time."""
    date = format_datetime(at.astimezone(zone), "d MMM y, HH:mm:ss", locale=_locale())
    return f"{date} UTC" if zone.key == "UTC" else date
