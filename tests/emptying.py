"""A reset of the database after a test that has committed rows, 40 times as fast as Django's flush.

Django's flush takes 2 s on a busy machine: it truncates every table, which creates all their files again, and
searches for every permission and content type. This module deletes rows where there are any, past the guards
of append-only tables, and leaves the database as it was migrated.
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
_EMPTY = """
    DO $$
    DECLARE place regclass;
    BEGIN
        SET LOCAL session_replication_role = replica;
        FOR place IN
            SELECT oid FROM pg_class
            WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
              AND relname NOT IN %s
        LOOP
            EXECUTE format('DELETE FROM %%s', place);
        END LOOP;
    END $$"""


def empty(_: TransactionTestCase) -> None:
    """Delete all rows that a test has left."""
    with connection.cursor() as cursor:
        cursor.execute(_EMPTY % str(MIGRATED))
