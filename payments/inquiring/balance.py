"""Reads the balances that the provider keeps, with the fees and payouts of the merchants' accounts, every night.

This module does not move money or write to the ledger. The ledger contains the amount that a card was charged, but
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
# The provider lists the lines of a payout only a day or two after the payout. Some of these lines are old.
LOOK_BACK = timedelta(days=3)
CHUNK = 500


def read_balance(since: datetime) -> int:
    """Store the provider's balance entries for our merchants since `since`, and return their number.

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
    """Yield a row for each entry that belongs to a merchant.

    An entry belongs to the merchant of its payment, or else to the merchant who owns the account.
    """
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
    """Map each account to its merchant, if it has only one.

    If an account has no current merchant, it is mapped to its former merchant, if there is only one. The platform's
    own account ("") is excluded.
    """
    now = Merchant.objects.filter(provider_account__in=accounts - {""})
    former = FormerAccount.objects.filter(provider_account__in=accounts - {""})
    of_nobody_now = former.exclude(provider_account__in=now.values("provider_account"))
    return _single_owners(now, "pk") | _single_owners(of_nobody_now, "merchant")


def _single_owners(rows: QuerySet[Any], owner: str) -> dict[str, UUID]:
    """Map each account that is in exactly one row to the owner in this row."""
    counted = rows.values("provider_account").annotate(count=Count("pk"))
    alone = counted.filter(count=1).values("provider_account")
    return dict(rows.filter(provider_account__in=alone).values_list("provider_account", owner))


def _save_entries(rows: Sequence[BalanceEntry]) -> None:
    """Store the entries. If an entry is already stored, update only its payout and `available_at`.

    If the payout of an entry is not known yet, the stored entry is not changed.
    """
    paid_out = {(row.account, row.reference): row for row in rows if row.payout}
    BalanceEntry.objects.bulk_create([row for row in rows if not row.payout], ignore_conflicts=True)
    BalanceEntry.objects.bulk_create(
        paid_out.values(),
        update_conflicts=True,
        unique_fields=["account", "reference"],
        update_fields=["payout", "available_at"],
    )
