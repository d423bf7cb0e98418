"""The cost of sending texts: no scan of the whole table, and no new index entry when a text is claimed."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from checkout.models import Checkout
from hosted_page.sms import outbox, sending
from portal.backoffice import queues
from tests import plans
from tests.hosted_page.browsers import PHONE, Payer

pytestmark = pytest.mark.django_db
TABLE = "hosted_page_smsmessage"
ENDED = """
INSERT INTO hosted_page_smsmessage (id, kind, merchant_id, checkout_uuid, subject, phone_digest, range_digest,
    address_digest, created_at, is_counted, ends_at, ended_at, receipt, refusal)
SELECT gen_random_uuid(), kind, merchant_id, checkout_uuid, subject, n, n, n, created_at, n % 10 = 0, ends_at, now(),
    '', ''
FROM (SELECT * FROM hosted_page_smsmessage LIMIT 1) one, generate_series(1, 3000) n
"""


class TestTheTable:
    def test_is_never_read_from_end_to_end(self, unpaid: Checkout) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        with connection.cursor() as cursor:
            cursor.execute(ENDED)
            cursor.execute(f"ANALYZE {TABLE}")
        with CaptureQueriesContext(connection) as asked:
            sending.end_late()
            assert sending.claim() is not None and sending.claim() is None
            outbox.delete_old()
            queues.read_queues(timezone.now())
        selects = [query["sql"] for query in asked if query["sql"].startswith("SELECT")]
        of_messages = [sql for sql in selects if TABLE in sql]
        assert len(of_messages) > 4
        read = {table for sql in of_messages for table in plans.scans(sql)}
        assert read <= {"sms_open", "payments_merchant"}, "open messages, and shops, of which there are few"

    def test_claims_a_message_without_a_new_index_entry(self, unpaid: Checkout) -> None:
        Payer(unpaid).post("/phone", phone=PHONE)
        before = updated_within_a_page()
        assert sending.claim() is not None
        assert updated_within_a_page() == before + 1


def updated_within_a_page() -> int:
    """Return how many message rows this transaction has updated without adding an index entry."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = %s", [TABLE])
        (count,) = cursor.fetchone()
    return int(count)
