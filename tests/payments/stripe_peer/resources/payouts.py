"""Payouts from an account's balance to its bank. (Reference: "Payouts"; "Payout reconciliation")"""

from tests.payments.stripe_peer.books import Book, Thing
from tests.payments.stripe_peer.resources import charges

ARRIVES_SECONDS = 2 * 86400


def pay_out(book: Book, currency: str, *, is_automatic: bool) -> Thing:
    """Pay out all balance lines that have not been paid out yet.

    A list can be filtered by a payout's id only if the payout is automatic. (List, `payout`)
    """
    lines = [
        row for row in book.all("balance_transaction") if row["currency"] == currency and not row["_payout"]
    ]
    amount = sum(row["net"] for row in lines)
    payout = book.make(
        "payout",
        amount=amount,
        arrival_date=book.peer.now() + ARRIVES_SECONDS,
        automatic=is_automatic,
        currency=currency,
        destination=None,
        method="standard",
        reconciliation_status="completed" if is_automatic else "not_applicable",
        status="in_transit",
        type="bank_account",
    )
    entry = charges.add_transaction(book, payout, -amount, type="payout")
    payout["balance_transaction"] = entry["id"]
    for row in [*lines, entry]:
        row["_payout"] = payout["id"] if is_automatic else "manual"
    book.emit("payout.created", payout)
    return payout
