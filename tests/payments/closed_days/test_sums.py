"""The sums of closed days and months give the correct balances, are cheap to read, and include late postings."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models import Sum
from uuid_utils.compat import uuid7

from checkout.models import Checkout
from checkout.proof import ledger_proof
from config.lib import clock
from payments import statements, tasks
from payments.closed_days import sums
from payments.discrepancies import kinds
from payments.models import LedgerClosing, LedgerSum, Merchant, Posting
from tests import factories
from tests.checkout.proof.tampering import without_guards

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.rule("money.sums")]
LINES = """
INSERT INTO payments_posting (id, transaction, checkout_uuid, merchant_id, account, amount, currency, created_at)
SELECT gen_random_uuid(), transaction, %(checkout)s, %(merchant)s, account, sign * %(amount)s, %(currency)s, %(at)s
FROM (SELECT gen_random_uuid() AS transaction, n FROM generate_series(1, %(times)s) AS n) transactions,
    (VALUES ('provider', 1), ('merchant', -1)) AS line (account, sign)
"""
ACCOUNT = Posting.Account.MERCHANT


@pytest.fixture
def second_connection() -> Iterator[Any]:
    """Yield a second database connection, which acts as another process."""
    parameters = connection.get_connection_params()
    names = ("dbname", "host", "user", "password", "port")
    with psycopg.connect(**{name: parameters[name] for name in names if name in parameters}) as own:
        yield own


def post_capture(
    merchant: Merchant, at: datetime, amount: int = 100, *, session: Any = connection, **more: Any
) -> None:
    """Post a capture at the given time."""
    order = Checkout.objects.filter(merchant=merchant).first() or factories.bare_checkout(merchant, uuid7())
    facts = {"merchant": merchant.pk, "checkout": order.pk, "amount": amount, "currency": "GBP", "at": at}
    facts |= {"times": 1}
    with session.cursor() as cursor:
        cursor.execute(LINES, facts | more)


def sum_of_postings(merchant: Merchant) -> dict[str, int]:
    """Map each currency to the sum of the postings to the merchant's account."""
    rows = Posting.objects.filter(merchant=merchant, account=ACCOUNT).values_list("currency")
    return dict(rows.annotate(total=Sum("amount")).order_by("currency"))


def balances(merchant: Merchant) -> dict[str, int]:
    (found,) = sums.read_balances(merchant.pk, ACCOUNT)
    return found


def spans(merchant: Merchant) -> list[tuple[date, date]]:
    rows = LedgerSum.objects.filter(merchant=merchant, account=ACCOUNT).order_by("begin")
    return list(rows.values_list("begin", "end").distinct())


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


EDGES = (
    *("2026-01-01T00:00", "2026-01-31T23:59:59.999999", "2026-02-01T00:00", "2026-02-28T12:00"),
    *("2026-03-01T00:00", "2026-03-01T23:59:59.999999", "2026-03-02T00:00", "2026-03-02T01:30"),
)


@pytest.fixture
def quarter(acme: Merchant, rival: Merchant) -> Merchant:
    """Post different amounts at the first and last moments of months and days.

    The postings belong to two merchants, and are in two currencies.
    """
    for number, moment in enumerate(EDGES):
        post_capture(acme, at(moment), 10**number)
        post_capture(acme, at(moment), 3 * 10**number, currency="EUR")
        post_capture(rival, at(moment), 7)
    return acme


class TestClosing:
    def test_sums_whole_months_and_the_days_of_the_current_one(self, quarter: Merchant) -> None:
        assert sums.close_days(at("2026-03-02T02:00"))
        assert spans(quarter) == [
            (date(2026, 1, 1), date(2026, 2, 1)),
            (date(2026, 2, 1), date(2026, 3, 1)),
            (date(2026, 3, 1), date(2026, 3, 2)),
        ]
        rows = LedgerSum.objects.filter(merchant=quarter, account=ACCOUNT, currency="GBP").order_by("begin")
        assert list(rows.values_list("amount", flat=True)) == [-11, -1100, -110_000]
        assert balances(quarter) == sum_of_postings(quarter) == {"EUR": -33_333_333, "GBP": -11_111_111}

    def test_day_by_day_gives_the_same_balances(self, quarter: Merchant, rival: Merchant) -> None:
        for day in range(90):
            now = at("2026-01-01T02:00") + timedelta(days=day)
            assert sums.close_days(now)
            assert (balances(quarter), balances(rival)) == (
                sum_of_postings(quarter),
                sum_of_postings(rival),
            ), now
        assert spans(quarter) == [
            (date(2026, 1, 1), date(2026, 2, 1)),
            (date(2026, 2, 1), date(2026, 3, 1)),
            (date(2026, 3, 1), date(2026, 3, 2)),
            (date(2026, 3, 2), date(2026, 3, 3)),
        ]
        assert sums.close_days(at("2026-04-01T02:00"))
        assert spans(quarter)[-1] == (date(2026, 3, 1), date(2026, 4, 1)) and len(spans(quarter)) == 3
        assert (
            balances(quarter) == sum_of_postings(quarter)
            and ledger_proof.breaches_of_sums(date(2026, 3, 1)) == []
        )

    def test_closes_a_day_one_hour_after_its_end(self, quarter: Merchant) -> None:
        sums.close_days(at("2026-03-02T00:59"))
        assert LedgerClosing.objects.get().closed_until == at("2026-03-01T00:00")
        sums.close_days(at("2026-03-02T01:00"))
        assert LedgerClosing.objects.get().closed_until == at("2026-03-02T00:00")

    def test_twice_closes_a_day_once(self, quarter: Merchant) -> None:
        assert sums.close_days(at("2026-03-02T02:00"))
        before = list(LedgerSum.objects.order_by("id").values())
        assert not sums.close_days(at("2026-03-02T02:00"))
        assert not sums.close_days(at("2026-02-02T02:00")), "an earlier clock opens nothing"
        assert list(LedgerSum.objects.order_by("id").values()) == before

    def test_by_two_processes_at_the_same_time_is_done_once(
        self, quarter: Merchant, second_connection: Any
    ) -> None:
        sums.close_days(at("2026-02-02T02:00"))
        second_connection.execute("SELECT 1 FROM payments_ledgerclosing FOR NO KEY UPDATE")
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
            try:
                assert not sums.close_days(at("2026-02-02T02:00")), "and nobody waits"
            finally:
                cursor.execute("RESET lock_timeout")
        second_connection.rollback()

    def test_is_started_by_the_task(self, acme: Merchant) -> None:
        now = clock.now()
        post_capture(acme, now - timedelta(days=3), 5)
        post_capture(acme, now, 6)
        tasks.close_days()
        assert LedgerSum.objects.filter(account=ACCOUNT).get().amount == -5
        assert balances(acme) == {"GBP": -11}


class TestLateTransactions:
    def test_a_transaction_that_is_still_open_delays_the_closing_of_its_day(
        self, quarter: Merchant, second_connection: Any
    ) -> None:
        post_capture(quarter, at("2026-02-15T12:00"), 5, session=second_connection)
        for _ in range(2):
            assert not sums.close_days(at("2026-03-02T02:00"))
            assert balances(quarter) == sum_of_postings(quarter)
        second_connection.commit()
        assert balances(quarter) == sum_of_postings(quarter)
        assert sums.close_days(at("2026-03-02T02:00"))
        assert balances(quarter) == sum_of_postings(quarter)
        february = LedgerSum.objects.get(
            account=ACCOUNT, merchant=quarter, currency="GBP", begin="2026-02-01"
        )
        assert february.amount == -1105

    def test_a_posting_for_a_closed_day_counts_on_the_day_it_arrives(self, quarter: Merchant) -> None:
        sums.close_days(at("2026-03-02T02:00"))
        post_capture(quarter, at("2026-02-15T12:00"), 5)
        newest = Posting.objects.order_by("-created_at")[0]
        assert clock.now() - newest.created_at < timedelta(minutes=1)
        assert balances(quarter) == sum_of_postings(quarter) and balances(quarter)["GBP"] == -11_111_116
        assert ledger_proof.breaches_of_sums(date(2026, 2, 1)) == []

    @pytest.mark.parametrize("ahead", [timedelta(days=3), timedelta(days=40)])
    def test_a_posting_after_the_clock_ran_ahead_counts_on_the_first_open_day(
        self, acme: Merchant, ahead: timedelta
    ) -> None:
        """The clock ran ahead for a while, so days in the future were closed.

        After the clock is corrected, a new posting counts on the first open day, which is in the future.
        """
        wrong = clock.now() + ahead
        post_capture(acme, wrong, 5)
        assert sums.close_days(wrong + timedelta(days=2))
        post_capture(acme, clock.now(), 7)
        assert balances(acme) == sum_of_postings(acme) == {"GBP": -12}
        newest = Posting.objects.order_by("-created_at")[0]
        assert newest.created_at == LedgerClosing.objects.get().closed_until
        assert sums.close_days(wrong + timedelta(days=4))
        assert balances(acme) == sum_of_postings(acme)
        assert [
            breach
            for month in ledger_proof.ledger_months()
            for breach in ledger_proof.breaches_of_sums(month)
        ] == []

    def test_a_transaction_that_started_after_the_closing_does_not_delay_the_sums(
        self, quarter: Merchant, second_connection: Any
    ) -> None:
        sums.close_days(at("2026-03-01T02:00"))
        second_connection.execute("SELECT pg_current_xact_id()")
        assert not sums.close_days(at("2026-03-02T02:00"))
        second_connection.rollback()
        second_connection.execute("SELECT pg_current_xact_id()")
        assert sums.close_days(at("2026-03-02T02:00"))

    def test_a_transaction_has_an_id_before_it_reads_the_closing(
        self, acme: Merchant, second_connection: Any
    ) -> None:
        """If a transaction inserts a posting, it gets an id before the trigger reads `closed_until`.

        When days are closed, their sums wait for running transactions, but not for a transaction without an id.
        In this test, a second trigger drops the posting, so that the insert itself assigns no id.
        """
        second_connection.execute(
            "CREATE TEMP TABLE like_postings (LIKE payments_posting INCLUDING DEFAULTS)"
        )
        second_connection.commit()
        second_connection.execute(
            "CREATE FUNCTION pg_temp.stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        )
        for name, function in (("a", "posting_goes_into_an_open_day"), ("b", "pg_temp.stop")):
            second_connection.execute(
                f"CREATE TRIGGER {name} BEFORE INSERT ON like_postings FOR EACH ROW EXECUTE FUNCTION {function}()"
            )
        second_connection.commit()
        second_connection.execute("INSERT INTO like_postings (created_at) VALUES (now())")
        ((given,),) = second_connection.execute(
            "SELECT pg_current_xact_id_if_assigned() IS NOT NULL"
        ).fetchall()
        assert given

    def test_a_horizon_of_another_server_is_replaced(self, quarter: Merchant, second_connection: Any) -> None:
        second_connection.execute("SELECT pg_current_xact_id()")
        sums.close_days(at("2026-03-02T02:00"))
        second_connection.rollback()
        LedgerClosing.objects.update(horizon=10**15)
        assert sums.close_days(at("2026-03-02T02:00"))


def read(merchant: Merchant) -> dict[str, int]:
    """Map each table to the number of rows that are read for a balance."""
    known = LedgerClosing.objects.get().summed_until
    accounts = [ACCOUNT.value]  # a page reads only the balances of the accounts that it shows
    parameters: Any = {"merchant": merchant.pk, "accounts": accounts, "known": known}
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statements.READ_BALANCES}", parameters)
        answer = cursor.fetchone()[0]
    nodes: list[dict[str, Any]] = [(json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]]
    rows: dict[str, int] = {}
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if "Relation Name" in node:
            assert "posting" not in node["Relation Name"] or node["Node Type"] == "Index Only Scan", node
            rows[node["Relation Name"]] = rows.get(node["Relation Name"], 0) + round(node["Actual Rows"])
            assert node["Relation Name"] != "payments_posting" or "Rows Removed by Filter" not in node
    return rows


def test_a_balance_reads_only_the_sums_and_the_postings_of_open_days(acme: Merchant, rival: Merchant) -> None:
    for month in range(1, 13):
        for merchant in (acme, rival):
            post_capture(merchant, datetime(2025, month, 10, tzinfo=UTC), times=400)
    post_capture(acme, at("2026-01-02T00:30"), times=4)
    assert sums.close_days(at("2026-01-02T02:00"))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE payments_posting")
        cursor.execute("VACUUM ANALYZE payments_ledgersum")
    assert read(acme) == {"payments_ledgersum": 12, "payments_ledgerclosing": 1, "payments_posting": 4}
    assert balances(acme) == {"GBP": -480_400}


class TestTheProof:
    @pytest.mark.parametrize(
        "tampering",
        [
            "UPDATE payments_ledgersum SET amount = amount + 1 WHERE merchant_id = %(merchant)s"
            " AND begin = '2026-02-01'",
            "DELETE FROM payments_ledgersum WHERE merchant_id = %(merchant)s AND begin = '2026-02-01'",
            "UPDATE payments_posting SET amount = amount + 1 WHERE merchant_id = %(merchant)s"
            " AND created_at = '2026-02-28T12:00Z'",
            "UPDATE payments_posting SET created_at = '2026-01-31T00:00Z' WHERE merchant_id = %(merchant)s"
            " AND created_at = '2026-02-01T00:00Z'",
        ],
    )
    def test_names_the_merchant_whose_sums_are_not_those_of_the_postings(
        self, quarter: Merchant, tampering: str
    ) -> None:
        sums.close_days(at("2026-03-02T02:00"))
        assert next(ledger_proof.ledger_months()) == date(2026, 1, 1)
        assert [
            found for month in ledger_proof.ledger_months() for found in ledger_proof.breaches_of_sums(month)
        ] == []
        without_guards(tampering, merchant=quarter.pk)
        found = {
            breach
            for month in ledger_proof.ledger_months()
            for breach in ledger_proof.breaches_of_sums(month)
        }
        assert found == {(quarter.pk, kinds.LEDGER_SUMS, quarter.pk)}

    @pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=40)])
    def test_finds_a_posting_in_closed_days_of_the_future(self, acme: Merchant, ahead: timedelta) -> None:
        """The clock ran ahead, so future days are closed. The trigger for late postings is disabled.

        The proof finds a posting on one of these days.
        """
        now = clock.now()
        post_capture(acme, now, 5)
        assert sums.close_days(now + timedelta(days=80))
        assert list(ledger_proof.breaches_of_sums(now.date().replace(day=1))) == []
        order = Checkout.objects.get(merchant=acme).pk
        facts = {"merchant": acme.pk, "checkout": order, "amount": 7, "currency": "GBP", "at": now + ahead}
        without_guards(LINES, times=1, **facts)
        assert balances(acme) != sum_of_postings(acme)
        found = {
            breach
            for month in ledger_proof.ledger_months()
            for breach in ledger_proof.breaches_of_sums(month)
        }
        assert found == {(acme.pk, kinds.LEDGER_SUMS, acme.pk)}

    def test_includes_postings_from_before_the_first_sum(self, quarter: Merchant) -> None:
        sums.close_days(at("2026-03-02T02:00"))
        without_guards("UPDATE payments_posting SET created_at = '2025-11-05' WHERE amount = -1")
        assert list(ledger_proof.ledger_months())[:2] == [date(2025, 11, 1), date(2025, 12, 1)]
        assert ledger_proof.breaches_of_sums(date(2025, 11, 1)) != []

    def test_has_no_months_without_sums(self, quarter: Merchant) -> None:
        assert list(ledger_proof.ledger_months()) == []
