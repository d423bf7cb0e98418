"""Exports a person's data: everything, or only the data that one merchant may see (rule privacy.export)."""

from typing import Any
from uuid import UUID

from checkout.models import Checkout, Customer, PaymentRequest, Prefill
from config.lib import clock
from hosted_page.models import KnownBrowser, OptIn, PayerSignIn
from hosted_page.privacy.data_subjects import Person
from payments.models import Merchant, Operation, Payment


def export_data(person: Person, merchant: Merchant | None = None) -> dict[str, Any]:
    """Return a person's data as JSON values.

    If `merchant` is given, return only the data that this merchant may see. A merchant gets the orders that the
    person placed there. The merchant gets the name and the number only if the person opted in there. The merchant
    gets no data about shares that the person paid as a mate, and no data from other merchants (rule share.privacy).
    """
    orders, shares, opt_ins, prefills = person.led_orders, person.shares, person.opt_ins, person.prefills
    if merchant is not None:
        orders, shares = orders.filter(merchant=merchant), shares.none()
        opt_ins = opt_ins.filter(person__merchant=merchant)
        prefills = prefills.filter(checkout__merchant=merchant)
    customer = person.customer
    knows_person = merchant is None or opt_ins.exists()  # an opt-in's event has the name and number
    prefills = prefills if knows_person else prefills.none()
    return {
        "name": (customer.name or None) if customer and knows_person else None,
        "phone": (customer.phone if knows_person else str(customer)) if customer else None,
        "remembered_since": _remembered_since(customer) if merchant is None else [],
        "signed_in_since": _signed_in_since(customer) if merchant is None else [],
        "known_since": clock.iso(customer.created_at) if customer and merchant is None else None,
        "orders": [
            _export_order(row, customer) for row in orders.select_related("merchant").order_by("created_at")
        ],
        "shares": [
            _export_share(row, customer)
            for row in shares.select_related("checkout__merchant").order_by("created_at")
        ],
        "said_by_merchants": [_export_prefill(row) for row in prefills.select_related("checkout__merchant")],
        "opt_ins": [*map(_export_opt_in, opt_ins.select_related("text__merchant").order_by("opted_in_at"))],
    }


def _remembered_since(customer: Customer | None) -> list[str | None]:
    """Return the times at which browsers began to remember the person's number."""
    browsers = KnownBrowser.objects.filter(phone=customer.phone) if customer and customer.phone else ()
    return [clock.iso(row.proven_at) for row in browsers]


def _signed_in_since(customer: Customer | None) -> list[str | None]:
    """Return the times at which the person signed in to pay. The service keeps sign-ins for only a few hours."""
    sign_ins = PayerSignIn.objects.filter(customer_uuid=customer.pk) if customer else ()
    return [clock.iso(row.began_at) for row in sign_ins]


def _export_order(checkout: Checkout, customer: Customer | None) -> dict[str, Any]:
    return {
        "merchant": checkout.merchant.name,
        "merchant_order_id": checkout.merchant_order_id,
        "checkout_uuid": str(checkout.pk),
        "status": checkout.status,
        "amount": checkout.amount,
        "currency": checkout.currency,
        "created_at": clock.iso(checkout.created_at),
        "cards": _cards_used(checkout.pk, customer),
    }


def _export_share(share: PaymentRequest, customer: Customer | None) -> dict[str, Any]:
    """Return a share's data. If another person paid the share, leave out that person's name."""
    is_of_another_mate = share.mate_id is not None and (customer is None or share.mate_id != customer.pk)
    return {
        "merchant": share.checkout.merchant.name,
        "checkout_uuid": str(share.checkout_id),
        "payment_request_uuid": str(share.pk),
        "name": None if is_of_another_mate else share.name or None,
        "status": share.status,
        "amount": share.amount,
        "currency": share.checkout.currency,
        "created_at": clock.iso(share.created_at),
        "cards": _cards_used(share.pk, customer),
    }


def _export_prefill(prefill: Prefill) -> dict[str, Any]:
    return {
        "merchant": prefill.checkout.merchant.name,
        "checkout_uuid": str(prefill.checkout_id),
        "phone": prefill.phone or None,
        "name": prefill.name or None,
        "locale": prefill.locale or None,
    }


def _cards_used(subject: UUID, customer: Customer | None) -> list[dict[str, str]]:
    """Return the cards that this person used for an order or a share. Leave out other people's cards."""
    if customer is None:
        return []
    authorizations = Operation.objects.filter(kind=Operation.Kind.AUTHORIZE, actor=f"customer:{customer.pk}")
    payments = Payment.objects.filter(subject=subject, operations__in=authorizations).exclude(card_last4="")
    return [
        {"brand": row.card_brand, "last4": row.card_last4, "status": row.status}
        for row in payments.order_by("created_at")
    ]


def _export_opt_in(opt_in: OptIn) -> dict[str, Any]:
    return {
        "merchant": opt_in.text.merchant.name,
        "checkout_uuid": str(opt_in.checkout_uuid),
        "email": opt_in.email or None,
        "words": opt_in.text.text,
        "placement": opt_in.placement,
        "opted_in_at": clock.iso(opt_in.opted_in_at),
    }
