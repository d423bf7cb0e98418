"""Serializers for the API's requests, one for each request."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from rest_framework import serializers

from checkout import creation
from checkout.customers import numbers
from checkout.states import Status
from config.lib import clock
from config.lib.api import fields
from config.lib.web import origins
from payments import money, safe_answers

MAXIMUM = money.MAXIMUM
MAX_OWN_BYTES = 8 * 1024  # maximum size of the JSON that a merchant can store with an order or an item
SOONEST_EXPIRY, LATEST_EXPIRY = timedelta(minutes=1), timedelta(hours=24)
CATEGORY = (
    "A slug. The known ones are ticket, merchandise, food_and_drink, accommodation, travel, experience, "
    "membership, service, donation, shipping, fee, tax, discount and other. The service keeps an unknown "
    "slug and shows it as other."
)
CUSTOM_DATA = (
    "Your own object: at most 8 KiB (with numbers written out), 4 levels and 50 keys. On a ticket, the "
    "service checks `event_id` (string), `event_start` (timestamp) and `time_zone` (IANA name) if they are "
    "present."
)
_CATEGORY = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Category(fields.Text):
    """The category of an item, as a slug. Unknown categories are also accepted and stored (rule create.category)."""

    def to_internal_value(self, data: Any) -> str:
        slug = super().to_internal_value(data)
        if not _CATEGORY.fullmatch(slug):
            raise serializers.ValidationError(
                "Must be a slug such as ticket: 1 to 64 of a-z, 0-9 and _, with a letter first."
            )
        return slug

    def schema(self) -> fields.Schema:
        return {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"}


class CustomData(serializers.Field[dict[str, Any], Any, Any, Any]):
    """Any JSON object within the limits of rule create.custom_data.

    The limits are 8 KiB, 4 levels and 50 keys. A number counts with all its digits, so 1e300 counts as 301 bytes.
    """

    # Without this name, code generators would create a numbered class for each place where the field is used.
    object_name = "CustomData"
    default_error_messages = fields.ERROR_TEXTS

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        if _max_stored_bytes(data) > MAX_OWN_BYTES:
            raise serializers.ValidationError("Must be at most 8 KiB of JSON, with numbers written in full.")
        self._count_keys(data, depth=1)
        return data

    def _count_keys(self, value: Any, depth: int) -> int:
        """Return the number of keys. Raises ValidationError for a NUL, too many levels or too many keys."""
        if isinstance(value, str) and "\x00" in value:
            raise serializers.ValidationError("Must not contain NUL characters.")
        if not isinstance(value, dict | list):
            return 0
        if depth > 4:
            raise serializers.ValidationError("Must be at most 4 levels deep.")
        names = list(value) if isinstance(value, dict) else []
        inner = [*names, *(value.values() if isinstance(value, dict) else value)]
        keys = len(names) + sum(self._count_keys(part, depth + 1) for part in inner)
        if keys > 50:
            raise serializers.ValidationError("Must have at most 50 keys.")
        return keys

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value

    def schema(self) -> fields.Schema:
        words = "Your own data for an item."
        return {"type": "object", "additionalProperties": True, "maxProperties": 50, "description": words}


def _max_stored_bytes(value: Any) -> int:
    """Return the maximum number of bytes that a value can take when PostgreSQL stores it as JSON.

    An exponent counts as the digits that it represents, because PostgreSQL writes 1e300 with 301 digits.
    """
    exponents = (repr(number).partition("e")[2] for number in _floats_in(value))
    return len(orjson.dumps(value)) + sum(abs(int(exponent or 0)) for exponent in exponents)


def _floats_in(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _floats_in(part)


class Metadata(serializers.Field[dict[str, str], Any, Any, Any]):
    """A JSON object with at most 50 keys, string values, and a size of at most 8 KiB (rule create.metadata)."""

    object_name = "Metadata"
    default_error_messages = fields.ERROR_TEXTS

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        if len(data) > 50:
            raise serializers.ValidationError("Must have at most 50 keys.")
        if wrong := dict(filter(None, map(_entry_error, data, data.values()))):
            raise serializers.ValidationError({name: [words] for name, words in wrong.items()})
        if len(orjson.dumps(data)) > MAX_OWN_BYTES:
            raise serializers.ValidationError("Must be at most 8 KiB of JSON.")
        return data

    def to_representation(self, value: dict[str, str]) -> dict[str, str]:
        return value

    def schema(self) -> fields.Schema:
        values = {"type": "string", "maxLength": 500}
        words = "Your own data for a checkout."
        return {"type": "object", "additionalProperties": values, "maxProperties": 50, "description": words}


def _entry_error(key: str, value: Any) -> tuple[str, str] | None:
    """Return the key of an invalid entry and an error message, or None if the entry is valid.

    If the key itself is invalid, it is not returned, because it can be long. The function then returns "" as the key.
    """
    if not 1 <= len(key) <= 40 or "\x00" in key:
        return "", "Keys must have 1 to 40 characters and no NUL character."
    if not isinstance(value, str):
        return key, "Must be a string."
    if len(value) > 500:
        return key, "Must have at most 500 characters."
    if "\x00" in value:
        return key, "Must not contain NUL characters."
    return None


class ItemIn(fields.Body):
    """One line of the order (rules create.limits, create.signs, create.category)."""

    item_ref = fields.Text(help_text="Your own reference for the line.")
    name = fields.Text(help_text="The name that the customer sees.")
    quantity = fields.Integer(minimum=1, maximum=10_000, help_text="The number of units.")
    unit_price = fields.MinorUnits(
        minimum=-MAXIMUM,
        maximum=MAXIMUM,
        help_text="The price of one unit, in minor units. Only a `discount` line has a negative price.",
    )
    currency = fields.Currency(help_text="The checkout's currency.")
    category = Category(default="other", help_text=CATEGORY)
    custom_data = CustomData(required=False, allow_null=True, help_text=CUSTOM_DATA)

    def to_internal_value(self, data: Any) -> Any:
        # Some checks compare two fields of the line. They read the line from this attribute, so that all errors are
        # reported together.
        self._line = data
        return super().to_internal_value(data)

    def validate_unit_price(self, unit_price: int) -> int:
        if wrong := creation.sign_error(unit_price, self._line.get("category", "other")):
            raise serializers.ValidationError(wrong)
        return unit_price

    def validate_currency(self, currency: str) -> str:
        of_the_checkout = self.root.initial_data.get("currency")
        if _is_current_currency(of_the_checkout) and currency != of_the_checkout:
            raise serializers.ValidationError(f"Must be {of_the_checkout}, the currency of the checkout.")
        return currency

    def validate_custom_data(self, custom: dict[str, Any] | None) -> dict[str, Any] | None:
        if self._line.get("category") == "ticket" and custom:
            _check_ticket(custom)
        return custom


def _check_ticket(custom: dict[str, Any]) -> None:
    problems: dict[str, list[str]] = {}
    if "event_id" in custom and not isinstance(custom["event_id"], str):
        problems["event_id"] = ["Must be a string."]
    if "event_start" in custom:
        try:
            fields.Timestamp().run_validation(custom["event_start"])
        except serializers.ValidationError:
            problems["event_start"] = ["Must be a timestamp with an offset, such as 2026-06-01T18:30:00Z."]
    zone = custom.get("time_zone", "UTC")
    if not isinstance(zone, str) or zone not in clock.zone_names():
        problems["time_zone"] = ["Must be an IANA time zone name, such as Europe/London."]
    if problems:
        raise serializers.ValidationError(problems)


class CustomerIn(fields.Body):
    """Customer data that the merchant sends so that the page is prefilled (rule create.customer)."""

    phone = fields.Text(
        required=False,
        allow_null=True,
        maximum=numbers.MAX_LETTERS,
        help_text="The customer's mobile number. Without `+` and a country code, it is a number of your own "
        "country. The page shows its last four digits, and texts a code to it when the customer asks "
        "for one.",
    )
    name = fields.Text(
        required=False,
        allow_null=True,
        help_text="The customer's name. The page fills it in after the code is entered.",
    )
    locale = fields.Text(
        required=False,
        allow_null=True,
        maximum=35,
        help_text="The language of the page and of its text messages, such as `fr` or `fr-CA`, unless the "
        "customer chooses another. If the page does not have the language, this field has no effect.",
    )

    def validate_phone(self, phone: str | None) -> str | None:
        if phone is None:
            return None
        country = self.context["merchant"].country
        try:
            return numbers.parse_number(phone, country, also_fictional=settings.SANDBOX)
        except numbers.InvalidPhone:
            raise serializers.ValidationError(
                "Must be a mobile number, such as +447700900123. Leave `phone` out if you have none."
            ) from None

    def validate(self, customer: dict[str, str | None]) -> dict[str, str]:
        """Return the values that are not null."""
        return {name: value for name, value in customer.items() if value is not None}


class CheckoutIn(fields.Body):
    """Request to create a checkout (rules create.*). The serializer's context must contain the `merchant`."""

    merchant_order_id = fields.Text(help_text="Your own reference for the order. It need not be unique.")
    total_amount = fields.MinorUnits(
        minimum=1,
        maximum=MAXIMUM,
        help_text="The sum of all items in minor units. In some currencies, a card can be charged only a "
        "narrower range of amounts. The error then names the range.",
    )
    currency = fields.Currency(help_text="ISO 4217 code in upper case, such as `GBP`.")
    return_url = fields.ReturnUrl(
        help_text="Where the service sends the customer after payment: an absolute https URL without a user "
        "name. If you keep a list of hosts in the portal, its host must be on the list. The service does not "
        "change the URL, so put your order's number in it. A visit is no reason to fulfil the order."
    )
    cancel_url = fields.ReturnUrl(
        help_text="Where the service sends a customer who gives up: an absolute https URL without a user "
        "name. If you keep a list of hosts in the portal, its host must be on the list. The service does not "
        "change the URL."
    )
    items = fields.List(
        child=ItemIn(),
        allow_empty=False,
        max_length=100,
        help_text="The lines of the order. They add up to `total_amount`.",
    )
    merchant_expires_at = fields.Timestamp(
        required=False,
        allow_null=True,
        help_text="When the unpaid checkout expires: 1 minute to 24 hours ahead, with an offset. Without "
        "it, the time that you have set in the portal applies, otherwise 60 minutes after creation.",
    )
    metadata = Metadata(
        required=False,
        allow_null=True,
        help_text="Your own data for the checkout: at most 50 keys of 1 to 40 characters, each with a "
        "string of at most 500 characters, 8 KiB in all. Every read returns it. Payers never see it. Do not "
        "put personal data in it.",
    )
    customer = CustomerIn(
        required=False,
        allow_null=True,
        help_text="Customer data that prefills the page. Each field is optional. The API never returns these "
        "fields, and the service deletes them a day after the checkout's end.",
    )

    def validate_currency(self, currency: str) -> str:
        if not _is_current_currency(currency):
            raise serializers.ValidationError("Must be a current ISO 4217 code in upper case, such as GBP.")
        return currency

    def validate_return_url(self, url: str) -> str:
        """Return the address.

        Raises ValidationError if the merchant has a list of allowed hosts and the host of the address is not in it.
        """
        listed, origin = self.context["merchant"].return_hosts, origins.origin_of(url)
        if listed and not {origins.host_of(url), origin.partition("://")[2]} & set(listed):
            raise serializers.ValidationError(
                "Must have a host from the merchant's list. Add the host in the portal's settings."
            )
        return url

    validate_cancel_url = validate_return_url

    def validate(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the order. Raises ValidationError if the order's total cannot be charged to a card."""
        rule, total = safe_answers.amount_rule(order["currency"]), order["total_amount"]
        if not rule.allows(total):
            reason = f"Must be {rule}. Cards cannot be charged other amounts in {order['currency']}."
            raise serializers.ValidationError({"total_amount": [reason]})
        return order

    def validate_merchant_expires_at(self, at: datetime | None) -> datetime | None:
        now = clock.now()
        if at is not None and not now + SOONEST_EXPIRY <= at <= now + LATEST_EXPIRY:
            raise serializers.ValidationError("Must be between 1 minute and 24 hours in the future.")
        return at


def _is_current_currency(currency: Any) -> bool:
    return isinstance(currency, str) and currency in money.currencies()


class FullAmount(fields.MinorUnits):
    """The amount of the checkout. A capture or refund refuses any other integer (rules capture.full, refund.full)."""

    def check(self, number: int) -> None:
        """Accept any number, because this field does not know the checkout's amount."""


class CaptureIn(fields.Body):
    """Request to capture a checkout. An empty body, `{}`, captures the full amount."""

    amount = FullAmount(
        required=False, minimum=1, maximum=MAXIMUM, help_text="The full amount, which is also the default."
    )


class CancelIn(fields.Body):
    """Request to cancel a checkout, with an optional note that is shown only in the portal."""

    reason = fields.Text(
        required=False,
        allow_null=True,
        minimum=0,
        help_text="A note for your own records. No customer sees it.",
    )


class RefundIn(fields.Body):
    """Request to refund a checkout (rules refund.ref, refund.full)."""

    merchant_refund_ref = fields.Text(
        help_text="Your own reference, unique among all your refunds. You can repeat it for the same "
        "checkout."
    )
    reason = fields.Text(
        required=False, allow_null=True, minimum=0, maximum=500, help_text="Your reason, in your own words."
    )
    amount = FullAmount(
        required=False, minimum=1, maximum=MAXIMUM, help_text="The full amount. You can leave it out."
    )


class CheckoutListQuery(fields.Query):
    """Query of the list of checkouts: its filters and the requested page."""

    status = fields.OneOf(
        tuple(status.value for status in Status), required=False, help_text="Only entries with this status."
    )
    merchant_order_id = fields.Text(required=False, help_text="Only checkouts of this order.")
    created_after = fields.Timestamp(required=False, help_text="Only entries created after this time.")
    created_before = fields.Timestamp(required=False, help_text="Only entries created before this time.")
    updated_after = fields.Timestamp(
        required=False,
        help_text="Only checkouts that changed after this time. With `sort=updated_at`, the cursor keeps "
        "this time, which must not be in the future.",
    )
    sort = fields.OneOf(
        ("updated_at",),
        required=False,
        help_text="`updated_at` lists by the last change, oldest first, and always returns a `next_cursor`. "
        "Store it and continue from it, so that you miss no change.",
    )
    limit = fields.QueryInteger(
        minimum=1, maximum=200, default=50, help_text="The number of entries per page."
    )
    cursor = fields.Cursor(required=False, maximum=500, help_text="`next_cursor` of the previous page.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "sort" in attrs:
            fields.check_not_ahead(attrs, "updated_after")
        return attrs
