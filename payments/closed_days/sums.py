"""Sums the ledger's closed days and months, so that a balance can be read without reading the whole ledger.

A day is closed an hour after its end. If a posting for a closed day is written later, a trigger (sql/ledger.sql) sets
the posting's time to the current time. The posting then counts in an open day. If the clock ran ahead when days were
closed, the current time can be in a closed day. The trigger then uses the end of the closed days instead.

A closed day is summed once all transactions that might still post to it have ended. After the end of a month, the sums
of its days are combined into one sum. A transaction that writes a posting does not write or lock a row with sums. A
statement that reads both sums and postings counts each posting once. Rule money.sums.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from config.lib.database import queries
from payments import statements
from payments.models import LedgerClosing, Posting

# A day is closed this long after its end, because clocks differ and transactions can take long.
CLOSING_DELAY = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # the end of the closed days before the first closing
_ALL_ACCOUNTS = {"accounts": list(Posting.Account.values)}


def read_balances(merchant_uuid: UUID, *accounts: Posting.Account) -> list[dict[str, int]]:
    """Return the balance of each of these accounts of a merchant: a map from currency to minor units.

    The query reads the sums of the closed days, and the postings of the later days.
    """
    summed_until = queries.value(statements.READ_SUMMED_UNTIL)
    parameters = {
        "merchant": merchant_uuid,
        "accounts": [account.value for account in accounts],
        "known": summed_until,
    }
    rows = queries.rows(statements.READ_BALANCES, parameters)
    return [{currency: total for of, currency, total in rows if of == account} for account in accounts]


def close_days(now: datetime) -> bool:
    """Close the days that have ended, and sum the days that can no longer get postings.

    Return whether days were summed. Several processes can call this at the same time.
    """
    until = (now - CLOSING_DELAY).replace(hour=0, minute=0, second=0, microsecond=0)
    LedgerClosing.objects.get_or_create(pk=1, defaults={"closed_until": EPOCH})
    with transaction.atomic(durable=True):
        if _lock_closing() is not None:
            rows = LedgerClosing.objects.filter(closed_until__lt=until)
            rows.update(closed_until=until, horizon=None)
    # This must be a separate transaction, because its snapshot must be later than the commit of the update above.
    with transaction.atomic(durable=True):
        if _lock_closing() is not None:
            queries.execute(statements.SET_HORIZON_OF_CLOSED_DAYS)
    with transaction.atomic(durable=True):
        found = _lock_closing()
        return found is not None and found.summed_until != found.closed_until and _sum_closed_days()


def first_month() -> date | None:
    """Return the first month of the ledger, or None while there are no sums."""
    row = queries.row(statements.READ_FIRST_DAY_OF_LEDGER, _ALL_ACCOUNTS)
    return row[0].replace(day=1) if row is not None and row[0] is not None else None


def last_day() -> date:
    """Return today or the last summed day, whichever is later.

    If the clock ran ahead when days were closed, the last summed day can be in the future.
    """
    day: date = queries.value(statements.READ_LAST_DAY_OF_LEDGER)
    return day


def merchants_with_wrong_sums(month: date) -> Sequence[UUID]:
    """Return the merchants whose stored sums for a month differ from the sums of their postings."""
    span = {"begin": month, "end": next_month(month)}
    found = queries.rows(statements.FIND_MERCHANTS_WITH_WRONG_SUMS, _ALL_ACCOUNTS | span)
    return [uuid for (uuid,) in found]


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    return (month + timedelta(days=31)).replace(day=1)


def _lock_closing() -> LedgerClosing | None:
    """Lock and return the only row of LedgerClosing, or return None if another process has locked it."""
    return LedgerClosing.objects.select_for_update(no_key=True, skip_locked=True).first()


def _sum_closed_days() -> bool:
    is_settled = bool(queries.value(statements.CHECK_CLOSED_DAYS_ARE_SETTLED))
    if is_settled:
        queries.execute(statements.REMOVE_TIME_LIMIT)  # the first run sums the whole ledger
        queries.execute(statements.SUM_CLOSED_DAYS, _ALL_ACCOUNTS)
        LedgerClosing.objects.update(summed_until=F("closed_until"))
    return is_settled
