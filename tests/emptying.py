"""Resets the database after a test that has committed rows. This is 40 times as fast as Django's flush.

Django's flush takes 2 s on a busy machine. It truncates every table, so PostgreSQL creates the files of all
tables again. It also searches for all permissions and content types. This module deletes only the rows that do
not come from migrations. It disables the triggers that protect append-only tables.
"""

from django.db import connection
from django.test import TransactionTestCase

MIGRATED = (
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "portal_canary",
    "payments_databasemark",
)
EMPTY = f"""
    DO $$
    DECLARE place regclass;
    BEGIN
        SET LOCAL session_replication_role = replica;
        FOR place IN
            SELECT oid FROM pg_class
            WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
              AND relname NOT IN {MIGRATED}
        LOOP
            EXECUTE format('DELETE FROM %s', place);
        END LOOP;
    END $$"""


def empty(_: TransactionTestCase) -> None:
    """Delete all rows that tests have committed."""
    with connection.cursor() as cursor:
        cursor.execute(EMPTY)
