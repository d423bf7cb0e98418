"""The page with the merchant's balance, its movements in the ledger, and the processor's fees."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from checkout.models import Checkout
from config.lib import clock
from config.lib.database import replica
from payments import money
from payments.closed_days import sums
from payments.models import BalanceEntry, Booking, Dispute, Merchant, Movement, Posting
from portal import audit, files, lists
from portal.access import requires
from portal.lists import Listing
from portal.models import Membership
from portal.orders import search
from portal.orders.disputed import ORDER_BADGES
from portal.views import payouts

HEADING = (
    *("posted_at", "kind", "amount", "currency", "order_id", "checkout_uuid", "operation"),
    *("processor_fee", "processor_fee_currency", "payout"),
)
# The labels for the kinds of movements and bookings.
KINDS: dict[str, str] = {
    Movement.Kind.CAPTURED: "Captured",
    Movement.Kind.REFUNDED: "Refunded",
    Movement.Kind.REFUND_RETURNED: "Refund returned",
    Movement.Kind.DISPUTE_WITHDRAWN: "Taken back in a dispute",
    Movement.Kind.DISPUTE_REINSTATED: "Returned after a won dispute",
    Booking.Kind.SETTLED_OUTSIDE: "Refunded another way",
    Booking.Kind.CLOSING: "Not owed to a lead any more",
}
REVERSED = "{}, reversed"  # the label for a booking's reversal
# The kinds of movements that an operation causes. A returned refund also refers to an operation, the refund,
# but that operation did not cause the return.
OPERATION_KINDS = (Movement.Kind.CAPTURED, Movement.Kind.REFUNDED)


class Cause(NamedTuple):
    """What caused a movement of money, in words, and the operation if there is one."""

    kind: str
    operation_uuid: UUID | None


NO_CAUSE = Cause("", None)


@requires("view")
@replica.readable
def show_balance(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the merchant's balance in each currency, and the movements that it consists of, newest first."""
    merchant, form = membership.merchant, search.Days(request.GET or None)
    rows = _matching_postings(merchant, lists.filter_values(form))
    context = partial(_balance_context, merchant, lists.filter_values(form))
    return lists.show_list(request, membership, Listing("balance", form, rows, context))


def _balance_context(
    merchant: Merchant, filters: dict[str, Any], postings: Sequence[Posting]
) -> dict[str, Any]:
    (totals,) = sums.read_balances(merchant.pk, Posting.Account.MERCHANT)
    return {
        "balances": [money.display(-total, currency) for currency, total in totals.items()],
        "disputed": [
            money.display(-total, currency) for currency, total in _disputed_sums(merchant) if total
        ],
        "rows": (rows := list(_movement_rows(merchant, postings))),
        "together": _sums_by_currency(rows),
        "payouts": [payouts.payout_row(row) for row in payouts.newest_payouts(merchant, filters)],
    }


@requires("export")
def export_balance(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Return the movements as a CSV file. Without filters, they add up to the balance."""
    form = search.Days(request.GET)
    if not form.is_valid():
        return redirect("portal_balance")
    merchant = membership.merchant
    source = files.Source(_matching_postings(merchant, form.cleaned_data), partial(_file_lines, merchant))
    answer = files.csv_response(membership, f"movements-{clock.now():%Y-%m-%d}.csv", HEADING, source)
    audit.record(request, membership, "exported", file="movements", filters=search.filter_texts(form))
    return answer


def _disputed_sums(merchant: Merchant) -> Iterator[tuple[str, int]]:
    """For each currency, yield the net amount that open disputes have moved, in the currency's minor units.

    Withdrawn money is negative.
    """
    rows = Movement.objects.filter(dispute__status=Dispute.Status.OPEN, payment__merchant=merchant)
    by_currency = rows.values_list("payment__currency").annotate(sum=Sum("amount"))
    yield from by_currency.order_by("payment__currency")


def _matching_postings(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[Posting]:
    """Return the postings in the merchant's account. The balance of this account is what we owe the merchant."""
    rows = Posting.objects.filter(merchant=merchant, account=Posting.Account.MERCHANT)
    return search.filter_by_days(rows, merchant, filters)


def _sums_by_currency(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the sum of a page's movements for each currency, in words."""
    page_sums: Counter[str] = Counter()
    for row in rows:
        page_sums[row["currency"]] += row["minor_units"]
    return [money.display(total, currency) for currency, total in sorted(page_sums.items())]


def _movement_rows(merchant: Merchant, postings: Any) -> Iterator[dict[str, Any]]:
    """Yield rows for the movements. Money that the merchant received is positive."""
    checkouts = Checkout.objects.filter(
        merchant=merchant, pk__in={posting.checkout_uuid for posting in postings}
    )
    orders = dict(checkouts.values_list("pk", "merchant_order_id"))
    transactions = {posting.transaction for posting in postings}
    causes, disputed = _causes_of(transactions), _disputed_checkouts(set(orders))
    operations = {cause.operation_uuid for cause in causes.values() if cause.operation_uuid}
    entries = {row.operation: row for row in BalanceEntry.objects.filter(operation__in=operations)}
    for posting in postings:
        cause = causes.get(posting.transaction, NO_CAUSE)
        entry = entries.get(cause.operation_uuid)
        yield {
            "at": posting.created_at,
            "kind": cause.kind,
            "amount": money.display(-posting.amount, posting.currency),
            "minor_units": -posting.amount,
            "currency": posting.currency,
            "order": orders.get(posting.checkout_uuid, ""),
            "badge": ORDER_BADGES[Dispute.Status.OPEN] if posting.checkout_uuid in disputed else None,
            "checkout_uuid": posting.checkout_uuid,
            "operation": cause.operation_uuid or posting.transaction,
            "fee": money.display(entry.fee, entry.currency) if entry and entry.fee else "",
            "line": entry,
        }


def _disputed_checkouts(checkouts: set[UUID]) -> set[UUID]:
    rows = Dispute.objects.filter(checkout_uuid__in=checkouts, status=Dispute.Status.OPEN)
    return set(rows.values_list("checkout_uuid", flat=True))


def _causes_of(transactions: set[UUID]) -> dict[UUID, Cause]:
    """Map each transaction in the ledger to the cause of its movement."""
    movements = Movement.objects.filter(pk__in=transactions).values_list("pk", "kind", "operation")
    causes = {
        pk: Cause(KINDS[kind], operation if kind in OPERATION_KINDS else None)
        for pk, kind, operation in movements
    }
    for booking in Booking.objects.filter(pk__in=transactions):
        kind = KINDS[booking.kind]
        causes[booking.pk] = Cause(REVERSED.format(kind) if booking.reverses_id else kind, None)
    return causes


def _file_lines(merchant: Merchant, postings: list[Posting]) -> Iterator[tuple[Any, ...]]:
    for row in _movement_rows(merchant, postings):
        at: datetime = row["at"]
        entry: BalanceEntry | None = row["line"]
        yield (
            clock.iso(at),
            row["kind"].lower(),
            money.plain_amount(row["minor_units"], row["currency"]),
            row["currency"],
            row["order"],
            str(row["checkout_uuid"]),
            str(row["operation"]),
            money.plain_amount(entry.fee, entry.currency) if entry else "",
            entry.currency if entry else "",
            entry.payout if entry else "",
        )
