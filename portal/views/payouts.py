"""The card processor's payouts to a merchant's bank account, and the lines in each payout."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase

from checkout.models import Checkout
from config.lib import clock
from payments import money
from payments.models import BalanceEntry, Merchant
from portal import audit, files
from portal.access import requires
from portal.models import Membership
from portal.orders import search

HEADING = ("made_at", "kind", "amount", "fee", "net", "currency", "order_id", "checkout_uuid", "reference")
MAX_SHOWN = 31  # about a month of daily payouts


def newest_payouts(merchant: Merchant, filters: dict[str, Any]) -> QuerySet[BalanceEntry]:
    """Return the merchant's newest payouts on the days in the filters, including returned payouts."""
    rows = BalanceEntry.objects.filter(merchant=merchant, kind=BalanceEntry.Kind.PAYOUT)
    matching = search.filter_by_days(rows, merchant, filters, key="made_at")
    return matching.order_by("-made_at", "-pk")[:MAX_SHOWN]


def payout_row(row: BalanceEntry) -> dict[str, Any]:
    """Return the page's row for a payout. Money that the bank account received is positive."""
    return {"entry": row, "amount": money.display(row.fee - row.amount, row.currency)}


@requires("export")
def export_payout(request: HttpRequest, membership: Membership, entry_uuid: UUID) -> HttpResponseBase:
    """Return the lines of a payout as a CSV file. Their net amounts add up to the payout's amount."""
    payouts = BalanceEntry.objects.filter(merchant=membership.merchant, kind=BalanceEntry.Kind.PAYOUT)
    payout = payouts.filter(pk=entry_uuid).first()
    if payout is None:
        raise Http404
    day = payout.available_at or payout.made_at
    answer = files.csv_response(membership, f"payout-{day:%Y-%m-%d}.csv", HEADING, _file_source(payout))
    audit.record(request, membership, "exported", file="payout", reference=payout.payout)
    return answer


def _file_source(payout: BalanceEntry) -> files.Source:
    rows = BalanceEntry.objects.filter(
        merchant=payout.merchant_id, account=payout.account, payout=payout.payout
    )
    return files.Source(rows.exclude(kind=BalanceEntry.Kind.PAYOUT), _file_lines, "made_at")


def _file_lines(entries: list[BalanceEntry]) -> Iterator[tuple[Any, ...]]:
    checkout_uuids = {row.checkout_uuid for row in entries if row.checkout_uuid}
    orders = dict(Checkout.objects.filter(pk__in=checkout_uuids).values_list("pk", "merchant_order_id"))
    for row in entries:
        yield (
            clock.iso(row.made_at),
            row.kind,
            money.plain_amount(row.amount, row.currency),
            money.plain_amount(row.fee, row.currency),
            money.plain_amount(row.amount - row.fee, row.currency),
            row.currency,
            orders.get(row.checkout_uuid, "") if row.checkout_uuid else "",
            str(row.checkout_uuid or ""),
            row.reference,
        )
