"""Creates, captures and releases charges, and writes their lines of the balance.

(Reference: "Charges", "Balance Transactions")
"""

from typing import Any

from tests.payments.stripe_peer.books import Book, Thing
from tests.payments.stripe_peer.resources import cards

HOLD_SECONDS = 7 * 86400  # an authorization is valid for this long ("Place a hold on a payment method")
AVAILABLE_SECONDS = 2 * 86400
# A charge that was captured asynchronously names its balance line only when it is this old.
ASYNC_SECONDS = 3600


def create(book: Book, intent: Thing, card: cards.Card, *, authorized: int | None) -> Thing:
    """Create the charge of an attempt. `authorized` is the amount, or None if the card is declined."""
    charge = book.make(
        "charge",
        amount=intent["amount"] if authorized is None else authorized,
        **{
            "amount_captured": 0,
            "amount_refunded": 0,
            "captured": False,
            "disputed": False,
            "refunded": False,
        },
        **{name: intent[name] for name in ("currency", "description", "metadata", "payment_method")},
        balance_transaction=None,
        failure_code=card.code or None if authorized is None else None,
        outcome=_outcome(card, authorized),
        paid=authorized is not None,
        payment_intent=intent["id"],
        payment_method_details={"type": "card", "card": _details(book, intent, card)},
        status="failed" if authorized is None else "succeeded",
    )
    book.emit("charge.failed" if authorized is None else "charge.succeeded", charge)
    return charge


def _outcome(card: cards.Card, authorized: int | None) -> Thing:
    if authorized is None:
        status = "declined_by_network"
        return {"type": "issuer_declined", "network_status": status, "reason": card.decline_code}
    return {"type": "authorized", "network_status": "approved_by_network", "reason": None}


def _details(book: Book, intent: Thing, card: cards.Card) -> Thing:
    verified = {"result": "authenticated", "version": "2.2.0"} if intent.get("_authenticated") else None
    details = {
        "brand": card.brand,
        "country": card.country,
        "exp_month": 12,
        "exp_year": 2040,
        "last4": card.last4,
        "fingerprint": f"peer{card.last4}",
    }
    return details | {
        "three_d_secure": verified,
        "capture_before": book.peer.now() + HOLD_SECONDS,
        "wallet": None,
    }


def capture(book: Book, charge: Thing, amount: int) -> None:
    """Capture `amount` of a hold, and release the rest."""
    fee = round(amount * 0.029) + 30
    entry = add_transaction(book, charge, amount, type="charge", fee=fee)
    charge |= {"captured": True, "amount_captured": amount, "_line": entry["id"]}
    intent = book.find("payment_intent", charge["payment_intent"])
    if intent["capture_method"] != "automatic_async":
        charge["balance_transaction"] = entry["id"]


def show_lines(book: Book) -> None:
    """Let each asynchronously captured charge name its balance line once it is old enough. (Event `charge.updated`)"""
    for charge in book.all("charge"):
        line = charge.get("_line")
        is_hidden = line is not None and charge["balance_transaction"] is None
        if is_hidden and charge["created"] + ASYNC_SECONDS <= book.peer.now():
            charge["balance_transaction"] = line
            book.emit("charge.updated", charge, balance_transaction=None)


def release(book: Book, charge: Thing, *, lapses: bool) -> None:
    """Release a whole hold. Only older API versions report this as a refund. (Changelog: 2025-03-31.basil)"""
    if "" < book.version < "2025-03-31":
        released = charge | {"amount_refunded": charge["amount"], "refunded": True}
        book.emit("charge.expired" if lapses else "charge.refunded", released)
        _tell_of_refund(book, charge, lapses=lapses)
    elif lapses:
        book.emit("charge.expired", charge)


def _tell_of_refund(book: Book, charge: Thing, *, lapses: bool) -> None:
    """Send an event that reports a released hold as a refund.

    The current API version does not list this refund. (Changelog: 2025-03-31.basil)
    """
    refund = book.make(
        "refund",
        **{name: charge[name] for name in ("amount", "currency", "payment_intent")},
        **{"charge": charge["id"], "balance_transaction": None, "metadata": {}, "status": "succeeded"},
        reason="expired_uncaptured_charge" if lapses else None,
    )
    del book.objects["refund"][refund["id"]]
    book.emit("refund.created", refund)


def add_transaction(book: Book, source: Thing, amount: int, **fields: Any) -> Thing:
    """Add a line with its fee to the account's balance. (Reference: "The Balance Transaction object")

    The line uses the currency of the balance. (`exchange_rate`)
    """
    currency, rate = book.settles_in or (source["currency"], None)
    amount, fee = (round(money * (rate or 1)) for money in (amount, fields.pop("fee", 0)))
    detail = {"amount": fee, "application": None, "currency": currency, "type": "stripe_fee"}
    detail |= {"description": "Stripe processing fees"}
    return book.make(
        "balance_transaction",
        **{"amount": amount, "fee": fee, "net": amount - fee, "fee_details": [detail] if fee else []},
        available_on=book.peer.now() + AVAILABLE_SECONDS,
        currency=currency,
        description=source.get("description"),
        exchange_rate=rate,
        reporting_category=fields.pop("category", fields["type"]),
        source=source["id"],
        status="pending",
        _payout=None,
        **fields,
    )
