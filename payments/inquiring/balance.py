"""The balance that the provider keeps: fees and payouts, read every night for the merchants' accounts.

This module neither moves money nor writes to the ledger. The ledger has the amount that a card was charged,
not the cost of the charge. Rule provider.balance.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db.models import Count, QuerySet

from config.lib import batches, clock
from payments import provider, safe_answers
from payments.models import BalanceEntry, FormerAccount, Merchant, Payment
from payments.provider import Entry

log = structlog.get_logger("payments.balance")
# The provider lists a payout's lines, including old ones, a day or two after it has made the payout.
LOOK_BACK = timedelta(days=3)
CHUNK = 500


def read_balance(since: datetime) -> int:
    """Store the provider's balance entries since `since` for our merchants, and return how many there are.

    If an entry is already stored, only its payout and `available_at` are updated. Raises ProviderUnreachable.
    """
    count = 0
    new_entries = safe_answers.safe_entries(provider.current_provider().entries(since), now=clock.now())
    for entries in batches.chunks(new_entries, CHUNK):
        rows = list(_merchant_entries(entries))
        _save_entries(rows)
        count += len(rows)
    log.info("balance read", lines=count)
    return count


def _merchant_entries(entries: Sequence[Entry]) -> Iterator[BalanceEntry]:
    """Yield the entries that belong to a merchant: the merchant of their payment, or of their account."""
    payments = Payment.objects.in_bulk({entry.payment for entry in entries if entry.payment})
    owners = _owners_of({entry.account for entry in entries})
    for entry in entries:
        payment = payments.get(entry.payment) if entry.payment else None
        merchant = payment.merchant_id if payment else owners.get(entry.account)
        if merchant is not None and entry.currency:
            yield BalanceEntry(
                merchant_id=merchant,
                account=entry.account,
                reference=entry.reference,
                kind=entry.kind.value,
                amount=entry.amount,
                fee=entry.fee,
                currency=entry.currency,
                made_at=entry.at,
                available_at=entry.available_at,
                checkout_uuid=payment.checkout_uuid if payment else None,
                operation=entry.operation,
                payout=entry.payout,
            )


def _owners_of(accounts: set[str]) -> dict[str, UUID]:
    """Map each account to its only current merchant. If it has none, map it to its only former merchant.

    The platform's own account ("") is left out.
    """
    now = Merchant.objects.filter(provider_account__in=accounts - {""})
    former = FormerAccount.objects.filter(provider_account__in=accounts - {""})
    of_nobody_now = former.exclude(provider_account__in=now.values("provider_account"))
    return _single_owners(now, "pk") | _single_owners(of_nobody_now, "merchant")


def _single_owners(rows: QuerySet[Any], owner: str) -> dict[str, UUID]:
    """Map each account that is in exactly one row to the owner in that row."""
    counted = rows.values("provider_account").annotate(count=Count("pk"))
    alone = counted.filter(count=1).values("provider_account")
    return dict(rows.filter(provider_account__in=alone).values_list("provider_account", owner))


def _save_entries(rows: Sequence[BalanceEntry]) -> None:
    """Store the entries. If an entry is already stored, update only its payout and `available_at`.

    If the entry's payout is not known yet, leave the stored entry unchanged.
    """
    paid_out = {(row.account, row.reference): row for row in rows if row.payout}
    BalanceEntry.objects.bulk_create([row for row in rows if not row.payout], ignore_conflicts=True)
    BalanceEntry.objects.bulk_create(
        paid_out.values(),
        update_conflicts=True,
        unique_fields=["account", "reference"],
        update_fields=["payout", "available_at"],
    )
