"""Builds the order summary that every page shows, and formats cards, days and times for pages."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID
from zoneinfo import ZoneInfo

from babel.dates import format_datetime, get_timezone_location
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext, to_locale
from django.utils.translation import gettext as _

from checkout.models import Checkout, Item
from checkout.states import Status
from config.lib import clock
from hosted_page import brand, share_items
from hosted_page.logo import storage
from hosted_page.payment_target import PaymentTarget, lead_name
from payments import money
from payments.models import Payment

DATES = {  # CLDR's long date patterns, for languages that differ from English ("Sat 12 December 2026")
    "de": {"EEE d": "EEE, d", "d MMMM": "d. MMMM"},
    "es": {"EEE d": "EEE, d", "MMMM y": "MMMM 'de' y", "d MMMM": "d 'de' MMMM"},
}


NOT_PRODUCTS = ("fee", "shipping", "tax", "discount")  # categories of items that are not products


@dataclass(frozen=True)
class Line:
    """A line of the order."""

    name: str
    detail: str
    price: str


@dataclass(frozen=True)
class Summary:
    """The summary of an order on every page."""

    merchant_name: str
    merchant_initial: str
    brand_css: str
    logo: storage.LogoOnPage | None
    order_id: str
    order_label: str
    due: str
    title: str
    subtitle: str
    lines: list[Line]
    mine: list[share_items.ItemRow]
    total_label: str
    total: str
    support_url: str
    terms_url: str
    privacy_url: str
    shop_url: str


def summary_of(target: PaymentTarget) -> Summary:
    """Return the order's summary, for the lead or for a mate."""
    checkout = target.checkout
    merchant, items = checkout.merchant, checkout.bill
    name = lead_name(checkout)
    units = target.share.units if target.share else []
    return Summary(
        merchant_name=merchant.name,
        merchant_initial=merchant.name[:1].upper(),
        brand_css=_style_sheet_address(merchant.pk, merchant.brand_version),
        logo=storage.logo_of(merchant),
        order_id=checkout.merchant_order_id,
        order_label=_("{name}’s order").format(name=name) if target.share else _("Order"),
        due=money.display_for_payer(target.amount, checkout.currency),
        title=share_items.in_words(checkout, units) or title(checkout),
        subtitle=_item_date(items[0], zone_of(checkout)),
        lines=[line_of(item, checkout.currency) for item in items],
        mine=share_items.rows_of(checkout, units) if units else [],
        total_label=total_label(checkout) if target.share else _("Total"),
        total=money.display_for_payer(checkout.amount, checkout.currency),
        support_url=merchant.support_url,
        terms_url=merchant.terms_url,
        privacy_url=merchant.privacy_url,
        shop_url=merchant.shop_url,
    )


def total_label(checkout: Checkout) -> str:
    """Return the label of the total on a mate's page.

    The label says that the lead has paid, but only while the order is captured. During a dispute, the shop might not
    have the money. A caller that knows about a dispute therefore uses "Total" instead.
    """
    if checkout.status != Status.CAPTURED:
        return _("Total")
    return _("Total, paid by {name}").format(name=lead_name(checkout))


@lru_cache(1024)
def _style_sheet_address(merchant_uuid: UUID, version: int) -> str:
    return f"{reverse('brand_css', args=[merchant_uuid, version])}?{brand.TOKENS_VERSION}"


def title(checkout: Checkout, *, shows_quantity: bool = False) -> str:
    """Return the title of the order: its first product, and the number of its other products.

    With `shows_quantity`, the title also has the quantity of the first product if it is more than one.
    """
    products = [item for item in checkout.bill if item.category not in NOT_PRODUCTS] or checkout.bill[:1]
    first = (
        f"{products[0].quantity} × {products[0].name}"
        if shows_quantity and products[0].quantity > 1
        else products[0].name
    )
    if len(products) == 1:
        return first
    words = ngettext("{first} and {count} more", "{first} and {count} more", len(products) - 1)
    return words.format(first=first, count=len(products) - 1)


def line_of(item: Item, currency: str) -> Line:
    """Return the line of an item, with its unit price if the quantity is more than one."""
    unit = money.display_for_payer(item.unit_price, currency)
    detail = f"{item.quantity} × {unit}" if item.quantity > 1 else ""
    return Line(item.name, detail, money.display_for_payer(item.quantity * item.unit_price, currency))


def card_in_words(payment: Payment | None, *, is_owner: bool) -> str:
    """Return a description of the card for use in a sentence.

    Only the card's owner (`is_owner`) sees its brand and digits.
    """
    if payment is None or not is_owner:
        return _("the card")
    return _("your {brand} ending {last4}").format(brand=payment.card_brand, last4=payment.card_last4)


def card_name(payment: Payment | None) -> str:
    """Return the brand and the last digits of a card, or "" if there is no card."""
    if payment is None:
        return ""
    return _("{brand} ending {last4}").format(brand=payment.card_brand, last4=payment.card_last4)


def _item_date(item: Item, zone: ZoneInfo) -> str:
    """Return an item's date in the order's time zone, or "" if the item has no date or the date has no UTC offset."""
    start = (item.custom_data or {}).get("event_start")
    if not isinstance(start, str):
        return ""
    try:
        start_time = datetime.fromisoformat(start)
        # The API refuses tickets whose time has no UTC offset. For other items, the service does not guess
        # the zone.
        if start_time.tzinfo is None:
            return ""
        at = start_time.astimezone(zone)
    except (ValueError, OverflowError):
        return ""
    return _add_zone(_format_in_language(at, "EEE d MMMM y, HH:mm"), at, zone)


def _add_zone(date: str, local: datetime, zone: ZoneInfo) -> str:
    """Return a date with the city of its time zone, or with the zone's abbreviation if it has no city."""
    place = _zone_city(zone)
    return (
        _("{date}, {place} time").format(date=date, place=place)
        if place
        else f"{date} {_zone_letters(local)}"
    )


def _babel_locale() -> str:
    """Return the active language as a locale name for Babel."""
    return to_locale(get_language() or "en")


def zone_of(checkout: Checkout) -> ZoneInfo:
    """Return the time zone of the first item that has one, otherwise the merchant's. Rule page.zone."""
    names = ((item.custom_data or {}).get("time_zone") for item in checkout.bill)
    valid_names = (name for name in names if isinstance(name, str) and name in clock.zone_names())
    return ZoneInfo(next(valid_names, checkout.merchant.time_zone))


def short_time(at: datetime, zone: ZoneInfo) -> SafeString:
    """Return a time of day to the minute, as HTML."""
    return _time_with_zone(at, zone, f"{at.astimezone(zone):%H:%M}")


def clock_time(at: datetime, zone: ZoneInfo) -> SafeString:
    """Return a time of day with seconds, as HTML."""
    return _time_with_zone(at, zone, f"{at.astimezone(zone):%H:%M:%S}")


def time_in_words(at: datetime, now: datetime, zone: ZoneInfo) -> SafeString:
    """Return a time of day with seconds as HTML. If the time is not today, include the date."""
    is_today = at.astimezone(zone).date() == now.astimezone(zone).date()
    return clock_time(at, zone) if is_today else full_time(at, zone)


def day_with_time(at: datetime | None, checkout: Checkout) -> SafeString:
    """Return a day with the time to the minute as HTML, or "" if `at` is None."""
    return SafeString() if at is None else _format_time(at, zone_of(checkout), "EEE d MMMM, HH:mm")


def time_until(at: datetime | None, now: datetime, checkout: Checkout) -> SafeString:
    """Return a deadline to the minute as HTML, or "" if `at` is None. If the deadline is not today, include the day."""
    zone = zone_of(checkout)
    is_today = at is not None and at.astimezone(zone).date() == now.astimezone(zone).date()
    return short_time(at, zone) if at is not None and is_today else day_with_time(at, checkout)


def full_time(at: datetime, zone: ZoneInfo) -> SafeString:
    """Return a full date with its time, as HTML."""
    return _format_time(at, zone, "d MMMM y, HH:mm:ss")


def full_date(at: datetime, zone: ZoneInfo) -> SafeString:
    """Return a full date with its time as HTML, to be shown next to `zone_words`.

    A browser breaks the line only between the date and the time, unless the date is longer than the line.
    """
    day, time = _format_in_language(at.astimezone(zone), "d MMMM y, HH:mm:ss").rsplit(" ", 1)
    return format_html('<span class="together">{}</span> {}', day, time)


def full_date_with_zone(at: datetime, zone: ZoneInfo) -> SafeString:
    """Return a full date with its time and zone as HTML, such as "21 November 2026, 19:05:02, London time"."""
    return format_html(_add_zone("{}", at.astimezone(zone), zone), full_date(at, zone))


def zone_words(at: datetime, zone: ZoneInfo) -> str:
    """Return a text for the time zone at a time, such as "London time (GMT)"."""
    letters, place = _zone_letters(at.astimezone(zone)), _zone_city(zone)
    return _("{place} time ({letters})").format(place=place, letters=letters) if place else letters


def _format_time(at: datetime, zone: ZoneInfo, pattern: str) -> SafeString:
    return _time_with_zone(at, zone, _format_in_language(at.astimezone(zone), pattern))


def _time_with_zone(at: datetime, zone: ZoneInfo, words: str) -> SafeString:
    """Return a time as HTML, including the abbreviation of its zone.

    The abbreviation is for payers in another zone, and for browsers without scripts.
    """
    local = at.astimezone(zone)
    offset_minutes = round((local.utcoffset() or timedelta()).total_seconds()) // 60
    html = '<time datetime="{}" data-zone="{}">{}<span>\N{NO-BREAK SPACE}{}</span></time>'
    return format_html(html, clock.iso(at.astimezone(UTC)), offset_minutes, words, _zone_letters(local))


def _zone_letters(local: datetime) -> str:
    """Return the abbreviation of a time's zone, such as "CEST", or its offset, such as "UTC+5:30", if it has none."""
    name = local.tzname() or "UTC"
    if name[0] not in "+-":
        return name
    return f"UTC{name[0]}{int(name[1:3])}{f':{name[3:]}' if name[3:] else ''}"


def _zone_city(zone: ZoneInfo) -> str:
    """Return the city of a time zone, or "" if the zone has no city."""
    if "/" not in zone.key or zone.key.startswith("Etc/"):
        return ""
    return get_timezone_location(zone, locale=_babel_locale(), return_city=True)


def date_of(at: datetime, checkout: Checkout) -> str:
    """Return a recent date as its day and month, without the year."""
    return _format_in_language(at.astimezone(zone_of(checkout)), "d MMMM")


def _format_in_language(at: datetime, pattern: str) -> str:
    """Format a local time with a CLDR pattern, in the active language. Rule page.dates."""
    locale = _babel_locale()
    for english, localized in DATES.get(locale, {}).items():
        pattern = pattern.replace(english, localized)
    return format_datetime(at, pattern, locale=locale)
