"""The export of a person's data, whole or as far as one merchant may know it (rule privacy.export)."""

from typing import Any
from uuid import UUID

from checkout.models import Checkout, Customer, PaymentRequest, Prefill
from config.lib import clock
from hosted_page.models import KnownBrowser, OptIn
from hosted_page.privacy.people import Person
from payments.models import Merchant, Payment


def of(person: Person, merchant: Merchant | None = None) -> dict[str, Any]:
    """Return a person's data as JSON values, whole, or as far as one merchant may know it.

    That is their own orders, and name and number only of somebody who has opted in there.
    """
    led, shares, opt_ins, prefills = person.led, person.shares, person.opt_ins, person.prefills
    if merchant is not None:
        led, shares = led.filter(merchant=merchant), shares.filter(checkout__merchant=merchant)
        opt_ins = opt_ins.filter(person__merchant=merchant)
        prefills = prefills.filter(checkout__merchant=merchant)
    customer = person.customer
    is_whole = merchant is None or opt_ins.exists()  # who has opted in has given them their name and number
    prefills = prefills if is_whole else prefills.none()
    return {
        "name": (customer.name or None) if customer and is_whole else None,
        "phone": (customer.phone if is_whole else str(customer)) if customer else None,
        "remembered_since": _remembered(customer) if is_whole else [],
        "known_since": clock.iso(customer.created_at) if customer else None,
        "orders": [_order(row) for row in led.select_related("merchant").order_by("created_at")],
        "shares": [_share(row) for row in shares.select_related("checkout__merchant").order_by("created_at")],
        "said_by_merchants": [_said(row) for row in prefills.select_related("checkout__merchant")],
        "opt_ins": [_opt_in(row) for row in opt_ins.select_related("text__merchant").order_by("opted_in_at")],
    }


def _remembered(customer: Customer | None) -> list[str | None]:
    """Return since when browsers are remembered by their number."""
    known = KnownBrowser.objects.filter(phone=customer.phone) if customer and customer.phone else ()
    return [clock.iso(row.proven_at) for row in known]


def _order(row: Checkout) -> dict[str, Any]:
    return {
        "merchant": row.merchant.name,
        "merchant_order_id": row.merchant_order_id,
        "checkout_uuid": str(row.pk),
        "status": row.status,
        "amount": row.amount,
        "currency": row.currency,
        "created_at": clock.iso(row.created_at),
        "cards": _cards(row.pk),
    }


def _share(row: PaymentRequest) -> dict[str, Any]:
    return {
        "merchant": row.checkout.merchant.name,
        "checkout_uuid": str(row.checkout_id),
        "payment_request_uuid": str(row.pk),
        "name": row.name or None,
        "status": row.status,
        "amount": row.amount,
        "currency": row.checkout.currency,
        "created_at": clock.iso(row.created_at),
        "cards": _cards(row.pk),
    }


def _said(row: Prefill) -> dict[str, Any]:
    return {
        "merchant": row.checkout.merchant.name,
        "checkout_uuid": str(row.checkout_id),
        "phone": row.phone or None,
        "name": row.name or None,
        "locale": row.locale or None,
    }


def _cards(subject: UUID) -> list[dict[str, str]]:
    paid = Payment.objects.filter(subject=subject).exclude(card_last4="").order_by("created_at")
    return [{"brand": row.card_brand, "last4": row.card_last4, "status": row.status} for row in paid]


def _opt_in(row: OptIn) -> dict[str, Any]:
    return {
        "merchant": row.text.merchant.name,
        "checkout_uuid": str(row.checkout_uuid),
        "email": row.email or None,
        "words": row.text.text,
        "placement": row.placement,
        "opted_in_at": clock.iso(row.opted_in_at),
    }
