"""Sums of the ledger's closed days and months. With them, a balance costs the same for any length of ledger.

A day is closed an hour after its end. From then on, a trigger dates a late posting by the clock, or by the
end of the closed days if the clock ran ahead when they were closed
(migrations/0019_late_postings_in_open_days.py). The posting therefore counts in an open day. A day is summed
once every transaction that might have posted before the closing has ended. When the month is over, its days
become one sum. A posting neither writes nor locks any row of the sums. A reader that reads sums and postings
in one statement finds each posting once. Rule money.sums.
"""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from payments.models import LedgerClosing, Posting

SETTLES = timedelta(hours=1)  # after a day's end, for clocks that differ and for long transactions

_BEGIN = "INSERT INTO payments_ledgerclosing (id, closed_until) VALUES (1, 'epoch') ON CONFLICT DO NOTHING"
_CLOSE = """
UPDATE payments_ledgerclosing SET closed_until = %(until)s, horizon = NULL WHERE closed_until < %(until)s
"""
# A horizon above all existing transaction ids is from another server: the database was restored here from a
# file.
_LOOK = """
UPDATE payments_ledgerclosing SET horizon = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
WHERE horizon IS NULL OR horizon > pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""
_IS_SETTLED = (
    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= horizon FROM payments_ledgerclosing"
)
# The postings of a merchant's account in a period are one range of an index that includes all columns needed
# here.
_POSTED = """
SELECT m.id AS merchant_id, accounts.account, p.currency, p.created_at, p.amount
FROM payments_ledgerclosing c, payments_merchant m, unnest(%(accounts)s::text[]) AS accounts (account), LATERAL (
    SELECT currency, created_at, amount FROM payments_posting
    WHERE merchant_id = m.id AND account = accounts.account AND created_at >= {begin} AND created_at < {end}
) p
"""
_SUM = f"""
WITH over AS (
    DELETE FROM payments_ledgersum s USING payments_ledgerclosing c
    WHERE s."end" = s.begin + 1 AND s.begin < date_trunc('month', c.closed_until AT TIME ZONE 'UTC')::date
    RETURNING s.merchant_id, s.account, s.currency, s.begin AS day, s.amount
), fresh AS (
    {_POSTED.format(begin="coalesce(c.summed_until, '-infinity')", end="c.closed_until")}
), all_days AS (
    SELECT * FROM over
    UNION ALL
    SELECT merchant_id, account, currency, (created_at AT TIME ZONE 'UTC')::date, amount FROM fresh
), spans AS (
    SELECT all_days.*, day < date_trunc('month', c.closed_until AT TIME ZONE 'UTC')::date AS is_over,
        date_trunc('month', day)::date AS month
    FROM all_days, payments_ledgerclosing c
)
INSERT INTO payments_ledgersum (id, merchant_id, account, currency, begin, "end", amount)
SELECT gen_random_uuid(), merchant_id, account, currency, CASE WHEN is_over THEN month ELSE day END,
    CASE WHEN is_over THEN (month + interval '1 month')::date ELSE day + 1 END, sum(amount)::bigint
FROM spans GROUP BY merchant_id, account, currency, 5, 6
"""  # noqa: S608 - only our own constants
_SUMMED = "UPDATE payments_ledgerclosing SET summed_until = closed_until"

_SUMMED_UNTIL = "SELECT coalesce(max(summed_until), '-infinity')::text FROM payments_ledgerclosing"
# The bound that was read before lets PostgreSQL estimate how few postings there are. The other bound is of
# this snapshot.
_BALANCES = """
SELECT account, currency, sum(amount)::bigint FROM (
    SELECT account, currency, amount FROM payments_ledgersum
    WHERE merchant_id = %(merchant)s AND account = ANY(%(accounts)s)
    UNION ALL
    SELECT account, currency, amount FROM payments_posting
    WHERE merchant_id = %(merchant)s AND account = ANY(%(accounts)s) AND created_at >= %(known)s::timestamptz
      AND created_at >= coalesce((SELECT summed_until FROM payments_ledgerclosing), '-infinity')
) lines GROUP BY account, currency ORDER BY account, currency
"""
_FIRST = """
SELECT least(
    (SELECT min(begin) FROM payments_ledgersum),
    (SELECT min(first.created_at AT TIME ZONE 'UTC')::date
     FROM payments_merchant m, unnest(%(accounts)s::text[]) AS accounts (account), LATERAL (
        SELECT created_at FROM payments_posting WHERE merchant_id = m.id AND account = accounts.account
        ORDER BY created_at, id LIMIT 1) first)
) FROM payments_ledgerclosing WHERE summed_until IS NOT NULL
"""
_LAST_DAY = """
SELECT greatest(clock_timestamp(), max(summed_until) - interval '1 day')::date FROM payments_ledgerclosing
"""
_WRONG = f"""
SELECT DISTINCT merchant_id FROM (
    SELECT merchant_id, account, currency, sum(amount) FROM (
        SELECT merchant_id, account, currency, amount FROM payments_ledgersum
        WHERE begin >= %(begin)s AND begin < %(end)s
        UNION ALL
        SELECT merchant_id, account, currency, -amount FROM ({
    _POSTED.format(
        begin="(%(begin)s::timestamp AT TIME ZONE 'UTC')",
        end="least(%(end)s::timestamp AT TIME ZONE 'UTC', c.summed_until)",
    )
}) posted
    ) lines GROUP BY merchant_id, account, currency HAVING sum(amount) <> 0
) differing
"""  # noqa: S608 - only our own constants
_OF_ACCOUNTS = {"accounts": list(Posting.Account.values)}


def balances(merchant_uuid: UUID, *accounts: Posting.Account) -> list[dict[str, int]]:
    """Return the sum of the postings of each of a merchant's accounts, in minor units by currency.

    The query reads the sums of the closed days, and the postings of the days since then.
    """
    ((known,),) = _rows(_SUMMED_UNTIL)
    asked = {"merchant": merchant_uuid, "accounts": [account.value for account in accounts], "known": known}
    rows = _rows(_BALANCES, asked)
    return [{currency: total for of, currency, total in rows if of == account} for account in accounts]


def close(now: datetime) -> bool:
    """Close the days that are over, and sum the days that can get no more postings.

    Return whether any were summed. This is called repeatedly, also by several processes at the same time.
    """
    until = (now - SETTLES).replace(hour=0, minute=0, second=0, microsecond=0)
    _execute(_BEGIN)
    with transaction.atomic(durable=True):
        if _locked() is not None:
            _execute(_CLOSE, {"until": until})
    with transaction.atomic(durable=True):  # its snapshot must be later than the commit of the closing
        if _locked() is not None:
            _execute(_LOOK)
    with transaction.atomic(durable=True):
        found = _locked()
        return found is not None and found.summed_until != found.closed_until and _sum()


def first_month() -> date | None:
    """Return the first month of the ledger, or None while there are no sums."""
    rows = _rows(_FIRST, _OF_ACCOUNTS)
    return rows[0][0].replace(day=1) if rows and rows[0][0] is not None else None


def last_day() -> date:
    """Return today, or the last summed day if that is later, because the clock might have run ahead."""
    ((day,),) = _rows(_LAST_DAY)
    found: date = day
    return found


def wrong_in(month: date) -> Sequence[UUID]:
    """Return the merchants whose sums of a month's closed days differ from their postings."""
    span = {"begin": month, "end": next_month(month)}
    return [uuid for (uuid,) in _rows(_WRONG, _OF_ACCOUNTS | span)]


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    return (month + timedelta(days=31)).replace(day=1)


def _locked() -> LedgerClosing | None:
    """Return the closing with its row locked, or None while another process holds the lock."""
    return LedgerClosing.objects.select_for_update(no_key=True, skip_locked=True).first()


def _sum() -> bool:
    ((is_settled,),) = _rows(_IS_SETTLED)
    if is_settled:
        _execute("SET LOCAL statement_timeout = 0")  # the first run sums the whole ledger
        _execute(_SUM, _OF_ACCOUNTS)
        _execute(_SUMMED)
    return bool(is_settled)


def _execute(statement: str, parameters: dict[str, Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def _rows(statement: str, parameters: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
