"""Before a quota counts a digest, it takes a lock for this digest."""

import pytest
from django.db import connection, transaction

from config.lib import quota


@pytest.mark.django_db
def test_an_empty_digest_locks_no_rows() -> None:
    """All callers with an IPv4 address share the empty site digest, so a lock for it would make them wait."""
    with transaction.atomic():
        quota.lock_digests("card", "a", "", "b", "")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            assert cursor.fetchone() == (2,)
