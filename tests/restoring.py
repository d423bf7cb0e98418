"""Restores the database to an earlier state in a test. The sandbox bank's tables are not restored."""

from datetime import datetime

from django.db import connection

from checkout.models import Checkout
from checkout.proof import ledger_proof
from checkout.restore import repair
from checkout.restore.repair import Repair
from checkout.syncing import sync
from config.lib import clock
from payments import restore_guard
from payments.models import Payment
from payments.providers.sandbox.models import Charge
from tests import mates
from webhooks.models import Event

PUMPED = 6

KEPT = ("bank_%", "django_%", "auth_%", "restored_%")
_TABLES = """
SELECT c.relname, string_agg(quote_ident(attname), ', ')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
    AND attgenerated = '' AND NOT relname LIKE ANY(%s)
GROUP BY c.relname
"""


class Backup:
    """A copy of all rows of the service, without the bank's rows. A test makes and restores it in its transaction."""

    def __init__(self) -> None:
        self.made_at = clock.now()
        with connection.cursor() as cursor:
            cursor.execute(_TABLES, [list(KEPT)])
            self.columns = dict(cursor.fetchall())
            for table in self.columns:
                cursor.execute(f"CREATE UNLOGGED TABLE restored_{table} AS SELECT * FROM {table}")

    def restore(self) -> None:
        """Restore the rows.

        Also record in the database that it ran on a different server, so that the restore guard closes the
        service.
        """
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for table, columns in self.columns.items():
                cursor.execute(f"DELETE FROM {table}")
                cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM restored_{table}")
            cursor.execute("SET LOCAL session_replication_role = origin")
            cursor.execute("UPDATE payments_databasemark SET server = 'another'")
        restore_guard._is_open.invalidate()

    def discard(self) -> None:
        with connection.cursor() as cursor:
            for table in self.columns:
                cursor.execute(f"DROP TABLE restored_{table}")


def anew(order: Checkout) -> Checkout:
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=order.pk)


def told(order: Checkout) -> list[str]:
    return list(Event.objects.filter(checkout_uuid=order.pk).order_by("pk").values_list("type", flat=True))


def borne() -> dict[str, int]:
    """Map the last four digits of each card to the captured amount that the bank has not refunded."""
    rows = Charge.objects.filter(state="captured").order_by("pk")
    return {row.last4: row.amount - row.refunded_amount for row in rows}


def repaired(began: datetime) -> Repair:
    """Repair the database. Check that its books agree with the bank's, and that no money has moved."""
    before = borne()
    done = repair.repair(began)
    assert not restore_guard.is_closed()
    assert borne() == before
    found = ledger_proof.find_breaches()
    assert found == [], found
    for payment_uuid in Payment.objects.values_list("pk", flat=True):
        assert not sync.sync(payment_uuid), "the two books agree"
    return done


def nothing_moves_later(order: Checkout) -> None:
    before = borne()
    for _ in range(PUMPED):
        mates.pump(order.pk)
    assert borne() == before
    assert ledger_proof.find_breaches() == []
