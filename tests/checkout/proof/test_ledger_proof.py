"""The proof of recent changes does not report rows that have not changed, and does not even read them."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from checkout import captures
from checkout.models import Checkout
from checkout.proof import ledger_proof, statements
from config.lib.database import partitions
from payments.models import Merchant
from tests import factories, plans
from tests.checkout.proof.tampering import UNBALANCED, copy, prove, tamper, without_guards
from tests.factories import CAUSE
from webhooks.models import EVENTS, Event

pytestmark = pytest.mark.django_db
LONG_AGO = "2020-01-01T00:00Z"


@pytest.fixture(autouse=True)
def bystander(rival: Merchant, pay: Callable[..., Checkout]) -> Checkout:
    """Return a captured checkout whose records the tests do not change."""
    paid = pay(factories.checkout(rival))
    return captures.capture(rival, paid.pk, cause=CAUSE)


class TestSince:
    def test_leaves_out_checkouts_that_have_not_changed(
        self, captured: Checkout, acme: Merchant, pay: Callable[..., Checkout]
    ) -> None:
        between = timezone.now()
        later = captures.capture(acme, pay(factories.checkout(acme)).pk, cause=CAUSE)
        for checkout in (captured, later):
            tamper(checkout, "UPDATE payments_posting SET amount = -1 WHERE account = 'merchant'")
        assert captured.pk in {breach.subject for breach in ledger_proof.find_breaches()}
        assert {breach.subject for breach in ledger_proof.find_breaches(since=between)} == {later.pk}
        assert ledger_proof.count_changed(since=between) == (1, 2)
        assert ledger_proof.find_breaches(since=timezone.now()) == []

    @pytest.mark.parametrize("fresh", ["row", "posting", "operation", "end"])
    def test_a_new_posting_or_operation_counts_as_a_change(self, captured: Checkout, fresh: str) -> None:
        between = timezone.now() - timedelta(hours=1)
        ages = {
            "row": "UPDATE checkout_checkout SET updated_at = %(then)s",
            "posting": "UPDATE payments_posting SET created_at = %(then)s",
            "operation": "UPDATE payments_operation SET created_at = %(then)s",
            "end": "UPDATE payments_operation SET ended_at = %(then)s",
        }
        for source, sql in ages.items():
            if source != fresh:
                without_guards(sql, then=LONG_AGO)
        tamper(captured, "UPDATE payments_posting SET amount = amount + 1 WHERE account = 'merchant'")
        assert captured.pk in {breach.subject for breach in ledger_proof.find_breaches(since=between)}


@pytest.mark.rule("money.proof")
@pytest.mark.parametrize(("kept", "kinds"), [(2, set()), (4, {"ledger_authorized_event"})])
def test_a_dropped_event_is_not_reported_as_missing(captured: Checkout, kept: int, kinds: set[str]) -> None:
    today = timezone.now().date()
    partitions.make(EVENTS, today - timedelta(days=kept), today)
    Event.objects.filter(checkout_uuid=captured.pk).delete()
    Checkout.objects.filter(pk=captured.pk).update(created_at=timezone.now() - timedelta(days=3))
    assert {breach.kind.name for breach in ledger_proof.report_breaches_of(captured.pk)} == kinds


ONE_SHARE = """
INSERT INTO checkout_paymentrequest (id, checkout_id, position, amount, name, phone, status, token, token_digest,
    created_at)
VALUES (gen_random_uuid(), %(checkout)s, 2, 1000, '', '', 'cancelled', '', '', now())
"""


DISPUTED = """
INSERT INTO payments_dispute (id, payment_id, checkout_uuid, reference, amount, reason, status, opened_at, created_at,
    closed_at)
SELECT {old}::uuid, {old}::uuid, {old}::uuid, n, 1000, 'fraudulent', 'won', now(), now(), now()
FROM numbers
"""

BOOKED = """
INSERT INTO payments_booking (id, kind, payment_id, checkout_uuid, share_uuid, amount, note, actor, created_at)
SELECT {old}::uuid, 'closing', {old}::uuid, {old}::uuid, {old}::uuid, 1000, '', '', now() FROM numbers
"""

NOTED = """
INSERT INTO payments_discrepancy (id, kind, subject, facts, created_at, note)
SELECT gen_random_uuid(), 'refund_returned', gen_random_uuid(), '{{}}', now(), '' FROM numbers
"""


# Inserts old reimbursements, and balance entries of old captures. `{old}` is the id of another old row that
# each of them names.
REIMBURSED = """
INSERT INTO payments_operation (id, payment_id, kind, purpose, amount, state, reference, reason, action_url, share_uuid,
    attempts, actor, request_id, created_at, ended_at)
SELECT gen_random_uuid(), {old}::uuid, 'refund', 'reimbursement', 1000, 'failed', '', '', '', {old}::uuid, 1, '', '',
    {then}, {then}
FROM numbers
"""

BALANCED = """
INSERT INTO payments_balanceentry (id, merchant_id, account, reference, kind, amount, fee, currency, made_at, operation,
    payout)
SELECT gen_random_uuid(), m.id, '', n, 'payment', 9000, 0, 'GBP', {then}, {old}::uuid, ''
FROM numbers, (SELECT id FROM payments_merchant LIMIT 1) m
"""


@pytest.fixture
def old_business(at: Callable[[str], Checkout]) -> datetime:
    """Create three thousand old checkouts. Return a time after which only a few rows were created."""
    since, checkout = timezone.now() - timedelta(minutes=5), at("refunded")
    tamper(checkout, ONE_SHARE)
    old = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))"
    many = "WITH numbers AS (SELECT generate_series(100, 3099) AS n) "
    then = f"'{LONG_AGO}'"
    mine = "original.checkout_uuid = %(checkout)s"
    for sql in (
        copy("payments_payment", mine, id=old, subject=old, checkout_uuid=old),
        copy("checkout_checkout", "original.id = %(checkout)s", id=old, payment_id=old, updated_at=then),
        copy(
            "payments_operation",
            "payment_id = %(payment)s AND kind = 'capture'",
            id=old,
            payment_id=old,
            created_at=then,
            ended_at=then,
        ),
        copy(
            "payments_posting",
            f"{mine} AND account = 'provider' AND original.amount > 0",
            id=old,
            transaction=old,
            checkout_uuid=old,
            created_at=then,
        ),
        copy(
            "payments_movement",
            f"{mine} AND kind = 'captured'",
            id=old,
            payment_id=old,
            checkout_uuid=old,
            operation_id=old,
            recorded_at=then,
        ),
        copy("webhooks_event", mine, id=old, checkout_uuid=old),
        copy(
            "checkout_paymentrequest",
            "checkout_id = %(checkout)s AND position = 2",
            id=old,
            checkout_id=old,
            token_digest="'old' || n",
        ),
        copy(
            "checkout_refund", "checkout_id = %(checkout)s", id=old, checkout_id=old, merchant_refund_ref="n"
        ),
    ):
        tamper(checkout, many + sql)
    tamper(checkout, many + DISPUTED.format(old=old))
    tamper(checkout, many + BOOKED.format(old=old))
    tamper(checkout, many + NOTED.format())
    tamper(checkout, many + REIMBURSED.format(old=old, then=then))
    tamper(checkout, many + BALANCED.format(old=old, then=then))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return since


SMALL = {"payments_merchant"}


def is_small(table: str) -> bool:
    """Return whether a table or index has few rows.

    The old events are in the default partition. Today's partition has few rows, and all other partitions are empty.
    """
    return table in SMALL or re.search(r"_\d{8}(_|$)", table) is not None


class TestPlans:
    def test_of_what_has_changed_read_no_table_from_end_to_end(self, old_business: datetime) -> None:
        with CaptureQueriesContext(connection) as queries:
            assert ledger_proof.find_breaches(since=old_business) == []
        # The statements of REFERENCES are left out here, because test_references.py tests them.
        beginnings = tuple(reference.sql[:60] for reference in statements.REFERENCES)
        asked = [
            query["sql"]
            for query in queries
            if "FROM" in query["sql"] and not query["sql"].startswith(beginnings)
        ]
        assert len(asked) == 3 + len(statements.INVARIANTS)
        read = {sql: {table for table in plans.scans(sql) if not is_small(table)} for sql in asked}
        found = [(sql[:300], tables) for sql, tables in read.items() if tables]
        assert found == [], found


class TestTheCommand:
    def test_checks_only_recent_changes_with_the_option_since_hours(self, captured: Checkout) -> None:
        tamper(captured, UNBALANCED)
        for sql in (
            "UPDATE checkout_checkout SET updated_at = %(then)s WHERE id = %(checkout)s",
            "UPDATE payments_posting SET created_at = %(then)s WHERE checkout_uuid = %(checkout)s",
            "UPDATE payments_operation SET created_at = %(then)s, ended_at = %(then)s"
            " WHERE payment_id = %(payment)s",
        ):
            without_guards(sql, then=LONG_AGO, checkout=captured.pk, payment=captured.payment_id)
        code, said, _ = prove("--since-hours", "2")
        assert code == 0 and said.endswith("1 checkouts, 2 postings, changed in the last 2 hours\n")
        assert prove()[0] == 1
