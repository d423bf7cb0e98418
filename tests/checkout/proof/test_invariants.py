from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any, NamedTuple

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from checkout import captures
from checkout.models import Checkout
from checkout.proof import invariants, proving, references
from payments.models import Discrepancy, Merchant
from tests import factories
from tests.factories import CAUSE

pytestmark = pytest.mark.django_db


def without_guards(sql: str, **facts: Any) -> None:
    """What a person with the database's keys could do."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET session_replication_role = replica")
        for statement in sql.split(";"):
            cursor.execute(statement, facts)
        cursor.execute("SET session_replication_role = DEFAULT")


def copy(table: str, where: str, **changes: str) -> str:
    """Return the SQL that inserts copies of rows, with these changes; `n` counts in them where there are many."""
    changed = ", ".join(f"'{name}', {value}" for name, value in changes.items())
    columns = ", ".join(_written(table))
    return f"""
        INSERT INTO {table} ({columns})
        SELECT {", ".join(f"(copied.filled).{name}" for name in _written(table))}
        FROM (SELECT jsonb_populate_record(original, jsonb_build_object({changed})) AS filled
              FROM {table} original, numbers WHERE {where}) copied"""


def _written(table: str) -> list[str]:
    """Return the columns of a table that PostgreSQL does not keep by itself."""
    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    return [str(field.column) for field in model._meta.concrete_fields if not field.generated]


ONE = "WITH numbers AS (SELECT 1 AS n) "
MINE = "original.checkout_uuid = %(checkout)s"
NEW = "'00000000-0000-7000-8000-00000000000a'"
GIVEN_BACK_BY_NOBODY = (
    ONE
    + copy(
        "payments_operation",
        "original.payment_id = %(payment)s AND kind = 'capture'",
        id=NEW,
        kind="'refund'",
        amount="5",
    )
    + ";"
    + ONE
    + copy(
        "payments_posting",
        f"{MINE} AND original.amount * CASE account WHEN 'provider' THEN 1 ELSE -1 END > 0",
        id="gen_random_uuid()",
        transaction=NEW,
        amount="-5 * sign(original.amount)",
    )
)
SECOND_PAYMENT = ONE + copy("payments_payment", MINE, id=NEW, status="'{status}'", abandoned_at="now()")


class Tampering(NamedTuple):
    """What somebody does to a checkout of this status, and which invariants it breaks."""

    kinds: set[str]
    status: str
    sql: str


TAMPERINGS = [
    Tampering(
        {"ledger_unbalanced"},
        "captured",
        "UPDATE payments_posting SET amount = amount + 1"
        " WHERE account = 'merchant' AND checkout_uuid = %(checkout)s",
    ),
    Tampering(
        {"ledger_capture_and_status", "ledger_without_operation"},
        "captured",
        "UPDATE payments_operation SET state = 'failed' WHERE kind = 'capture' AND payment_id = %(payment)s",
    ),
    Tampering(
        {"ledger_capture_and_status", "ledger_not_posted"},
        "captured",
        "UPDATE payments_operation SET amount = 1 WHERE kind = 'capture' AND payment_id = %(payment)s",
    ),
    Tampering(
        {"ledger_capture_and_status", "ledger_not_returned", "ledger_voided_event"},
        "captured",
        "UPDATE checkout_checkout SET status = 'voided', captured_at = NULL, voided_at = now(),"
        " void_reason = 'auth_expired' WHERE id = %(checkout)s",
    ),
    Tampering(
        {"ledger_two_captures", "ledger_not_posted"},
        "captured",
        SECOND_PAYMENT.format(status="captured")
        + ";"
        + ONE
        + copy(
            "payments_operation",
            "original.payment_id = %(payment)s AND kind = 'capture'",
            id=NEW,
            payment_id=NEW,
        ),
    ),
    Tampering(
        {"ledger_payment_not_live"},
        "captured",
        "UPDATE payments_payment SET abandoned_at = now() WHERE id = %(payment)s",
    ),
    Tampering(
        {"ledger_share_not_live"},
        "shared",
        "UPDATE payments_payment SET abandoned_at = now() WHERE checkout_uuid = %(checkout)s"
        " AND id <> %(payment)s AND status = 'captured'",
    ),
    Tampering(
        {"ledger_late_capture"},
        "captured",
        "UPDATE checkout_checkout SET capture_before = captured_at - interval '1 hour' WHERE id = %(checkout)s",
    ),
    Tampering(
        {"ledger_not_posted", "ledger_not_borne"},
        "captured",
        "DELETE FROM payments_posting WHERE checkout_uuid = %(checkout)s",
    ),
    Tampering(
        {"ledger_not_posted"},
        "shared",
        "UPDATE payments_operation o SET closed_as = gen_random_uuid() FROM payments_payment p"
        " WHERE p.id = o.payment_id AND p.checkout_uuid = %(checkout)s AND o.kind = 'capture' AND o.account = 'lead'",
    ),
    Tampering(
        {"ledger_without_operation"},
        "captured",
        ONE
        + copy(
            "payments_posting",
            MINE,
            id="gen_random_uuid()",
            transaction=NEW,
            account="CASE account WHEN 'merchant' THEN 'lead' ELSE account END",
        ),
    ),
    Tampering({"ledger_not_borne"}, "captured", GIVEN_BACK_BY_NOBODY),
    Tampering({"ledger_not_returned"}, "refunded", GIVEN_BACK_BY_NOBODY),
    Tampering(
        {"ledger_returned_untold"},
        "refunded",
        "WITH back AS (UPDATE payments_operation o SET returned_as = gen_random_uuid() FROM payments_payment p"
        " WHERE p.id = o.payment_id AND p.checkout_uuid = %(checkout)s AND o.kind = 'refund'"
        " RETURNING o.returned_as, o.amount, p.merchant_id, p.currency)"
        " INSERT INTO payments_posting"
        " (id, transaction, checkout_uuid, merchant_id, account, amount, currency, created_at)"
        " SELECT gen_random_uuid(), returned_as, %(checkout)s, merchant_id, account, amount * sign, currency, now()"
        " FROM back, (VALUES ('provider', 1), ('returned', -1)) AS line (account, sign)",
    ),
    Tampering(
        {"ledger_refund_and_status"},
        "refunded",
        "UPDATE checkout_refund SET status = 'failed' WHERE checkout_id = %(checkout)s",
    ),
    Tampering(
        {"ledger_forgotten_hold"},
        "voided",
        "UPDATE payments_operation SET state = 'failed', ended_at = now()"
        " WHERE kind = 'void' AND payment_id = %(payment)s",
    ),
    Tampering({"ledger_forgotten_hold"}, "captured", SECOND_PAYMENT.format(status="authorized")),
    Tampering(
        {"ledger_owed_to_lead"},
        "shared",
        "UPDATE checkout_paymentrequest SET status = 'reimbursed'"
        " WHERE status = 'paid' AND checkout_id = %(checkout)s",
    ),
    Tampering(
        {"ledger_share_and_status"},
        "shared",
        "UPDATE checkout_paymentrequest SET status = 'reimbursed', payment_id = %(payment)s, paid_at = now()"
        " WHERE status = 'open' AND checkout_id = %(checkout)s",
    ),
    Tampering(
        {"ledger_forgotten_hold"},
        "shared",
        ONE
        + copy(
            "payments_payment",
            f"{MINE} AND subject <> checkout_uuid",
            id=NEW,
            status="'authorized'",
            abandoned_at="now()",
        ),
    ),
    Tampering(
        {"ledger_authorized_event"},
        "captured",
        "DELETE FROM webhooks_event WHERE checkout_uuid = %(checkout)s",
    ),
    Tampering(
        {"ledger_authorized_event"}, "authorized", ONE + copy("webhooks_event", MINE, id="gen_random_uuid()")
    ),
    Tampering(
        {"ledger_voided_event"},
        "lapsed",
        "DELETE FROM webhooks_event WHERE type = 'checkout.voided' AND checkout_uuid = %(checkout)s",
    ),
    Tampering(
        {"ledger_voided_event"},
        "captured",
        ONE + copy("webhooks_event", MINE, id="gen_random_uuid()", type="'checkout.voided'"),
    ),
]


@pytest.fixture(autouse=True)
def bystander(rival: Merchant, pay: Callable[..., Checkout]) -> Checkout:
    """A captured checkout whose books nobody touches."""
    paid = pay(factories.checkout(rival))
    return captures.capture(rival, paid.pk, cause=CAUSE)


def tamper(checkout: Checkout, sql: str) -> None:
    without_guards(sql, checkout=checkout.pk, payment=checkout.payment_id)


def seen(breaches: list[proving.Breach]) -> set[tuple[object, str]]:
    return {(breach.subject, breach.kind) for breach in breaches}


def prove(*arguments: str) -> tuple[int, str, str]:
    """Return the command's exit code, output and complaints."""
    said, complained = StringIO(), StringIO()
    try:
        call_command("prove_ledger", *arguments, stdout=said, stderr=complained)
    except SystemExit as ended:
        return int(str(ended.code)), said.getvalue(), complained.getvalue()
    return 0, said.getvalue(), complained.getvalue()


class TestBreaches:
    @pytest.mark.rule("money.proof")
    @pytest.mark.parametrize(
        "status",
        [
            "created",
            "authorized",
            "captured",
            "shared",
            "refunding",
            "refunded",
            "voided",
            "lapsed",
            "expired",
        ],
    )
    def test_are_none_in_any_status(self, at: Callable[[str], Checkout], status: str) -> None:
        at(status)
        assert proving.breaches() == proving.breaches(since=timezone.now() - timedelta(hours=1)) == []

    @pytest.mark.rule("money.nothing_held", "money.proof")
    @pytest.mark.parametrize(
        "tampering", TAMPERINGS, ids=lambda case: f"{case.status} {' '.join(sorted(case.kinds))}"
    )
    def test_name_the_checkout_that_was_tampered_with_and_no_other(
        self, at: Callable[[str], Checkout], tampering: Tampering
    ) -> None:
        checkout = at(tampering.status)
        tamper(checkout, tampering.sql)
        expected = {(checkout.pk, kind) for kind in tampering.kinds}
        found = proving.breaches()
        assert seen(found) == expected
        assert {breach.merchant_uuid for breach in found} == {checkout.merchant_id}
        assert proving.breaches(since=timezone.now() - timedelta(hours=1)) == found

    def test_each_invariant_is_broken_above_and_has_a_name_that_fits(self) -> None:
        broken = set.union(*(case.kinds for case in TAMPERINGS))
        assert {invariant.kind for invariant in invariants.INVARIANTS} == broken
        assert max(map(len, broken)) <= 60

    def test_do_not_count_a_capture_that_was_in_doubt_over_its_deadline(self, captured: Checkout) -> None:
        tamper(captured, "UPDATE payments_operation SET attempts = 2 WHERE kind = 'capture'")
        tamper(captured, "UPDATE checkout_checkout SET capture_before = captured_at - interval '1 hour'")
        assert proving.breaches() == []


class TestReport:
    def test_leaves_one_discrepancy_for_each_breach(self, captured: Checkout) -> None:
        tamper(captured, "DELETE FROM payments_posting WHERE checkout_uuid = %(checkout)s")
        for _ in range(2):
            assert proving.report(since=timezone.now() - timedelta(hours=2)) == 2
        left = Discrepancy.objects.order_by("kind")
        assert [row.kind for row in left] == ["ledger_not_borne", "ledger_not_posted"]
        assert {(row.subject, row.merchant_id) for row in left} == {(captured.pk, captured.merchant_id)}
        assert "is in the ledger" in left[1].facts["invariant"]

    def test_leaves_nothing_where_all_is_proved(self, captured: Checkout) -> None:
        assert (
            proving.report(since=timezone.now() - timedelta(hours=2)) == 0
            and not Discrepancy.objects.exists()
        )


class TestTheCommand:
    def test_prints_what_it_proved(self, captured: Checkout) -> None:
        code, said, complained = prove()
        assert (code, complained) == (0, "")
        assert [line for line in said.splitlines() if line.startswith("proved: ")] == [
            *(f"proved: {proved.promise}" for proved in (*invariants.INVARIANTS, *references.REFERENCES)),
            f"proved: {proving.SUMS}",
        ]
        assert said.endswith("2 checkouts, 4 postings\n")

    @pytest.mark.rule("money.proof")
    def test_names_who_breaks_what_and_exits_1(self, captured: Checkout) -> None:
        tamper(captured, TAMPERINGS[0].sql)
        for arguments in ((), ("--since-hours", "2")):
            code, said, complained = prove(*arguments)
            assert (code, said) == (1, "")
            assert complained == f"{captured.pk}  breaks: every transaction sums to zero\n"
