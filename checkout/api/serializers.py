"""Serializers of the API's requests, one for each request."""

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
from config.lib import clock, fields
from config.lib.web import origins
from payments import money, safe_answers

MAXIMUM = money.MAXIMUM
MAX_OWN = 8 * 1024  # bytes of JSON that a merchant can store with an order or with an item
SOONEST_EXPIRY, LATEST_EXPIRY = timedelta(minutes=1), timedelta(hours=24)
_CATEGORY = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Category(fields.Text):
    """A slug. The service keeps a slug that it does not know (rule create.category)."""

    def to_internal_value(self, data: Any) -> str:
        slug = super().to_internal_value(data)
        if not _CATEGORY.fullmatch(slug):
            raise serializers.ValidationError("Must be a slug such as ticket: a-z, 0-9 and _, at most 64.")
        return slug


class CustomData(serializers.Field[dict[str, Any], Any, Any, Any]):
    """Any JSON object within the limits of rule create.custom_data.

    The limits are 8 KiB with numbers written out, 4 levels and 50 keys.
    """

    default_error_messages = fields.SAID

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        if _written_out(data) > MAX_OWN:
            raise serializers.ValidationError("Must be at most 8 KiB of JSON, its numbers written out.")
        self._walk(data, depth=1)
        return data

    def _walk(self, value: Any, depth: int) -> int:
        """Return the number of keys. Raises ValidationError for a NUL, too many levels or too many keys."""
        if isinstance(value, str) and "\x00" in value:
            raise serializers.ValidationError("Must not contain NUL characters.")
        if not isinstance(value, dict | list):
            return 0
        if depth > 4:
            raise serializers.ValidationError("Must be at most 4 levels deep.")
        names = list(value) if isinstance(value, dict) else []
        inner = [*names, *(value.values() if isinstance(value, dict) else value)]
        keys = len(names) + sum(self._walk(part, depth + 1) for part in inner)
        if keys > 50:
            raise serializers.ValidationError("Must have at most 50 keys.")
        return keys


def _written_out(value: Any) -> int:
    """Return the largest number of bytes that a value can take as JSON in PostgreSQL.

    PostgreSQL writes 1e300 as 301 digits.
    """
    exponents = (repr(number).partition("e")[2] for number in _floats(value))
    return len(orjson.dumps(value)) + sum(abs(int(exponent or 0)) for exponent in exponents)


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _floats(part)


class Metadata(serializers.Field[dict[str, str], Any, Any, Any]):
    """An object of at most 50 keys with string values, 8 KiB in all (rule create.metadata)."""

    default_error_messages = fields.SAID

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        if len(data) > 50:
            raise serializers.ValidationError("Must have at most 50 keys.")
        if wrong := dict(filter(None, map(_wrong_entry, data, data.values()))):
            raise serializers.ValidationError({name: [words] for name, words in wrong.items()})
        if len(orjson.dumps(data)) > MAX_OWN:
            raise serializers.ValidationError("Must be at most 8 KiB of JSON.")
        return data


def _wrong_entry(key: str, value: Any) -> tuple[str, str] | None:
    """Return the key of a wrong entry and a sentence that says what is wrong, or None.

    If the key itself is wrong, "" is returned instead, because the key can be long.
    """
    if not 1 <= len(key) <= 40 or "\x00" in key:
        return "", "Keys must have 1 to 40 characters, none of them NUL."
    if not isinstance(value, str):
        return key, "Must be a string."
    if len(value) > 500:
        return key, "Must have at most 500 characters."
    if "\x00" in value:
        return key, "Must not contain NUL characters."
    return None


class ItemIn(fields.Body):
    """Line of the order (rules create.limits, create.signs, create.category)."""

    item_ref = fields.Text()
    name = fields.Text()
    quantity = fields.Integer(minimum=1, maximum=10_000)
    unit_price = fields.Integer(minimum=-MAXIMUM, maximum=MAXIMUM)
    currency = fields.Currency()
    category = Category(default="other")
    custom_data = CustomData(required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        self._line = data  # for fields that depend on another field, so that all errors are reported at once
        return super().to_internal_value(data)

    def validate_unit_price(self, unit_price: int) -> int:
        if wrong := creation.wrong_sign(unit_price, self._line.get("category", "other")):
            raise serializers.ValidationError(wrong)
        return unit_price

    def validate_currency(self, currency: str) -> str:
        of_the_checkout = self.root.initial_data.get("currency")
        if _is_in_use(of_the_checkout) and currency != of_the_checkout:
            raise serializers.ValidationError(f"Must be {of_the_checkout}, as the checkout's.")
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
    if not isinstance(zone, str) or zone not in clock.zones():
        problems["time_zone"] = ["Must be an IANA time zone name, such as Europe/London."]
    if problems:
        raise serializers.ValidationError(problems)


class CustomerIn(fields.Body):
    """Customer data that the merchant sends to prefill the page (rule create.customer)."""

    phone = fields.Text(required=False, allow_null=True, maximum=numbers.MAX_LETTERS)
    name = fields.Text(required=False, allow_null=True)
    locale = fields.Text(required=False, allow_null=True, maximum=35)

    def validate_phone(self, phone: str | None) -> str | None:
        if phone is None:
            return None
        country = self.context["merchant"].country
        try:
            return numbers.read(phone, country, also_fictional=settings.SANDBOX)
        except numbers.InvalidPhone:
            raise serializers.ValidationError(
                "Must be a mobile number, such as +447700900123. Leave it out if you have none."
            ) from None

    def validate(self, customer: dict[str, str | None]) -> dict[str, str]:
        """Return the values that were sent and are not null."""
        return {name: value for name, value in customer.items() if value is not None}


class CheckoutIn(fields.Body):
    """Request to create a checkout (rules create.*). Its context holds the `merchant`."""

    merchant_order_id = fields.Text()
    total_amount = fields.Integer(minimum=1, maximum=MAXIMUM)
    currency = fields.Currency()
    return_url = fields.ReturnUrl()
    cancel_url = fields.ReturnUrl()
    items = fields.List(child=ItemIn(), allow_empty=False, max_length=100)
    merchant_expires_at = fields.Timestamp(required=False, allow_null=True)
    metadata = Metadata(required=False, allow_null=True)
    customer = CustomerIn(required=False, allow_null=True)

    def validate_currency(self, currency: str) -> str:
        if not _is_in_use(currency):
            raise serializers.ValidationError("Must be an ISO 4217 code in use, in upper case, such as GBP.")
        return currency

    def validate_return_url(self, url: str) -> str:
        """Return the address.

        Raises ValidationError if the merchant has a list of hosts and the address's host is not on it.
        """
        listed, origin = self.context["merchant"].return_hosts, origins.of(url)
        if listed and not {origins.host_of(url), origin.partition("://")[2]} & set(listed):
            raise serializers.ValidationError(
                "Its host is not on the merchant's list. Add it in the portal's settings."
            )
        return url

    validate_cancel_url = validate_return_url

    def validate(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return the order. Raises ValidationError if a card cannot be charged its total."""
        rule, total = safe_answers.amount_rule(order["currency"]), order["total_amount"]
        if not rule.allows(total):
            reason = f"Must be {rule}: cards cannot be charged other amounts in {order['currency']}."
            raise serializers.ValidationError({"total_amount": [reason]})
        return order

    def validate_merchant_expires_at(self, at: datetime | None) -> datetime | None:
        now = clock.now()
        if at is not None and not now + SOONEST_EXPIRY <= at <= now + LATEST_EXPIRY:
            raise serializers.ValidationError("Must be between 1 minute and 24 hours ahead.")
        return at


def _is_in_use(currency: Any) -> bool:
    return isinstance(currency, str) and currency in money.currencies()


class FullAmount(fields.Integer):
    """The checkout's amount. The verb refuses any other integer (rules capture.full, refund.full)."""

    def check(self, number: int) -> None:
        """Accept any number, because only the verb knows the amount."""


class CaptureIn(fields.Body):
    """Request to capture. `{}` captures the full amount."""

    amount = FullAmount(required=False, minimum=1, maximum=MAXIMUM)


class CancelIn(fields.Body):
    """Request to cancel, with an optional note that only the portal shows."""

    reason = fields.Text(required=False, allow_null=True, minimum=0)


class RefundIn(fields.Body):
    """Request to refund (rules refund.ref, refund.full)."""

    merchant_refund_ref = fields.Text()
    reason = fields.Text(required=False, allow_null=True, minimum=0, maximum=500)
    amount = FullAmount(required=False, minimum=1, maximum=MAXIMUM)


class CheckoutListQuery(fields.Query):
    """Filters and page of the list of checkouts."""

    status = fields.OneOf(tuple(status.value for status in Status), required=False)
    merchant_order_id = fields.Text(required=False)
    created_after = fields.Timestamp(required=False)
    created_before = fields.Timestamp(required=False)
    updated_after = fields.Timestamp(required=False)
    sort = fields.OneOf(("updated_at",), required=False)
    limit = fields.QueryInteger(minimum=1, maximum=200, default=50)
    cursor = fields.Cursor(required=False, maximum=500)
