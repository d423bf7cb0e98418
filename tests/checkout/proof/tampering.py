"""SQL with which a person could manipulate an order's rows, and the invariants that each manipulation breaks."""

from io import StringIO
from typing import Any, NamedTuple

from django.apps import apps
from django.core.management import call_command
from django.db import connection

from checkout.models import Checkout


def without_guards(sql: str, **facts: Any) -> None:
    """Run SQL with triggers disabled, as a person with database access could."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET session_replication_role = replica")
        for statement in sql.split(";"):
            cursor.execute(statement, facts)
        cursor.execute("SET session_replication_role = DEFAULT")


def copy(table: str, where: str, **changes: str) -> str:
    """Return the SQL that inserts copies of rows with changed columns.

    `changes` maps columns to SQL expressions. In an expression, `n` is the number of the copy.
    """
    changed = ", ".join(f"'{name}', {value}" for name, value in changes.items())
    columns = ", ".join(_written(table))
    return f"""
        INSERT INTO {table} ({columns})
        SELECT {", ".join(f"(copied.filled).{name}" for name in _written(table))}
        FROM (SELECT jsonb_populate_record(original, jsonb_build_object({changed})) AS filled
              FROM {table} original, numbers WHERE {where}) copied"""


def _written(table: str) -> list[str]:
    """Return the columns of a table, except generated columns."""
    model = next(model for model in apps.get_models() if model._meta.db_table == table)
    return [str(field.column) for field in model._meta.concrete_fields if not field.generated]


ONE = "WITH numbers AS (SELECT 1 AS n) "
MINE = "original.checkout_uuid = %(checkout)s"
NEW = "'00000000-0000-7000-8000-00000000000a'"
SECOND_PAYMENT = ONE + copy("payments_payment", MINE, id=NEW, status="'{status}'", abandoned_at="now()")


class Tampering(NamedTuple):
    """SQL that manipulates a checkout with this status, and the kinds of breaches that the proof must find."""

    kinds: set[str]
    status: str
    sql: str


REFUND = """id IN (SELECT o.id FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id
    WHERE p.checkout_uuid = %(checkout)s AND o.kind = 'refund')"""
OF_LEAD = (
    "operation_id IN (SELECT id FROM payments_operation WHERE payment_id = %(payment)s AND kind = 'refund')"
)
WITHDRAWN = (
    f"UPDATE payments_operation SET state = 'failed', reason = 'withdrawn', ended_at = now() WHERE {REFUND}"
)


def given_more(lead: int, mate: int, purpose: str = "refund_part") -> str:
    """Return the SQL that changes all records so that the refunds to the lead's and the mate's cards are larger."""
    more = f"CASE payment_id WHEN %(payment)s THEN {lead} ELSE {mate} END"
    return f"""
        UPDATE payments_posting l SET amount = l.amount + CASE account WHEN 'provider' THEN -1 ELSE 1 END
            * (SELECT {more} FROM payments_movement m WHERE m.id = l.transaction)
        WHERE transaction IN (
            SELECT m.id FROM payments_movement m JOIN payments_operation o ON o.id = m.operation_id
            WHERE m.checkout_uuid = %(checkout)s AND m.kind = 'refunded' AND o.purpose = '{purpose}');
        UPDATE payments_movement SET amount = amount - {more}
        WHERE checkout_uuid = %(checkout)s AND kind = 'refunded'
          AND operation_id IN (SELECT id FROM payments_operation WHERE purpose = '{purpose}');
        UPDATE payments_operation SET amount = amount + {more} WHERE purpose = '{purpose}' AND {REFUND}"""


# Manipulations that a proof would miss if it only checked that our records agree with each other.
BLIND_SPOTS = [
    # The mate's part of the refund was sent to the lead's card.
    Tampering(
        {"ledger_card_got_too_much", "ledger_card_still_bears"},
        "split refunded",
        f"UPDATE payments_movement SET payment_id = %(payment)s WHERE checkout_uuid = %(checkout)s"
        f" AND kind = 'refunded'; UPDATE payments_operation SET payment_id = %(payment)s WHERE {REFUND}",
    ),
    # The two cards' refunds were changed: one is larger, and the other is smaller by the same amount.
    Tampering(
        {"ledger_card_got_too_much", "ledger_card_still_bears"}, "split refunded", given_more(1000, -1000)
    ),
    Tampering({"ledger_share_not_planned"}, "shared", WITHDRAWN),
    Tampering({"ledger_refund_not_planned"}, "refunding", WITHDRAWN),
]
# A posting to an account that is not used by any movement.
UNBALANCED = ONE + copy(
    "payments_posting", f"{MINE} AND account = 'provider'", id="gen_random_uuid()", account="'outside'"
)
TAMPERINGS = [
    Tampering({"ledger_unbalanced"}, "captured", UNBALANCED),
    Tampering(
        {"ledger_not_recorded"},
        "captured",
        "UPDATE payments_operation SET state = 'failed' WHERE kind = 'capture' AND payment_id = %(payment)s",
    ),
    Tampering(
        {"ledger_not_recorded"},
        "captured",
        "UPDATE payments_operation SET amount = 1 WHERE kind = 'capture' AND payment_id = %(payment)s",
    ),
    Tampering(
        {"ledger_not_recorded", "ledger_card_still_bears"},
        "refunded",
        "DELETE FROM payments_posting WHERE transaction IN (SELECT id FROM payments_movement WHERE"
        f" {OF_LEAD}); DELETE FROM payments_movement WHERE {OF_LEAD}",
    ),
    Tampering(
        {"ledger_capture_and_status", "ledger_moved_without_capture", "ledger_voided_event"},
        "captured",
        "UPDATE checkout_checkout SET status = 'voided', captured_at = NULL, voided_at = now(),"
        " void_reason = 'auth_expired' WHERE id = %(checkout)s",
    ),
    Tampering(
        {"ledger_two_captures"},
        "captured",
        SECOND_PAYMENT.format(status="captured")
        + ";"
        + ONE
        + copy(
            "payments_operation",
            "original.payment_id = %(payment)s AND kind = 'capture'",
            id=NEW,
            payment_id=NEW,
        )
        + ";"
        + ONE
        + copy("payments_movement", MINE, id=NEW, payment_id=NEW, operation_id=NEW)
        + ";"
        + ONE
        + copy("payments_posting", MINE, id="gen_random_uuid()", transaction=NEW),
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
        {"ledger_not_posted"},
        "captured",
        "DELETE FROM payments_posting WHERE checkout_uuid = %(checkout)s",
    ),
    Tampering(
        {"ledger_not_posted", "ledger_owed_to_lead"},
        "unreimbursed refunded",
        "DELETE FROM payments_posting WHERE transaction IN ("
        "SELECT id FROM payments_booking WHERE checkout_uuid = %(checkout)s)",
    ),
    Tampering(
        {"ledger_without_movement"},
        "captured",
        ONE
        + copy(
            "payments_posting",
            MINE,
            id="gen_random_uuid()",
            transaction=NEW,
        ),
    ),
    Tampering({"ledger_card_got_too_much"}, "refunded", given_more(1, 1)),
    Tampering({"ledger_card_still_bears"}, "refunded", given_more(-1, -1)),
    Tampering(
        {"ledger_refunded_while_captured", "ledger_owed_to_lead"},
        "reimbursed",
        given_more(1, 1, "reimbursement"),
    ),
    Tampering({"ledger_share_not_planned"}, "reimbursed", given_more(-1, -1, "reimbursement")),
    Tampering(
        {"ledger_refunded_while_captured", "ledger_share_not_planned"},
        "reimbursed",
        "UPDATE payments_operation SET purpose = 'refund_part', refund_uuid = gen_random_uuid(),"
        f" share_uuid = NULL WHERE {REFUND}",
    ),
    Tampering(
        {"ledger_wrong_card", "ledger_share_not_planned"},
        "reimbursed",
        "UPDATE payments_movement SET payment_id = mates.id FROM payments_payment mates"
        " WHERE mates.checkout_uuid = %(checkout)s AND mates.kind = 'share' AND payments_movement.kind = 'refunded'"
        " AND payments_movement.checkout_uuid = %(checkout)s;"
        "UPDATE payments_operation SET payment_id = mates.id FROM payments_payment mates"
        " WHERE mates.checkout_uuid = %(checkout)s AND mates.kind = 'share'"
        " AND payment_id = %(payment)s AND payments_operation.kind = 'refund'",
    ),
    Tampering(
        {"ledger_against_balance"},
        "captured",
        "INSERT INTO payments_balanceentry (id, merchant_id, account, reference, kind, amount, fee, currency,"
        " made_at, operation, payout) SELECT gen_random_uuid(), p.merchant_id, '', 'txn_1', 'payment', 8999, 0,"
        " p.currency, now(), o.id, '' FROM payments_operation o JOIN payments_payment p ON p.id = o.payment_id"
        " WHERE p.id = %(payment)s AND o.kind = 'capture'",
    ),
    Tampering(
        {"ledger_refund_and_status"},
        "refunded",
        "UPDATE checkout_refund SET settled_at = NULL WHERE checkout_id = %(checkout)s",
    ),
    Tampering(
        {"ledger_forgotten_hold"},
        "voided",
        "UPDATE payments_operation SET state = 'failed', ended_at = now()"
        " WHERE kind = 'void' AND payment_id = %(payment)s",
    ),
    Tampering({"ledger_forgotten_hold"}, "captured", SECOND_PAYMENT.format(status="authorized")),
    Tampering(
        {"ledger_share_not_planned"},
        "shared",
        f"{WITHDRAWN}; UPDATE checkout_paymentrequest SET status = 'reimbursed'"
        " WHERE status = 'paid' AND checkout_id = %(checkout)s",
    ),
    Tampering(
        {"ledger_share_and_status", "ledger_share_not_planned"},
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
        {"ledger_pledge"},
        "shared",
        "UPDATE checkout_paymentrequest SET status = 'pledged' WHERE status = 'open' AND checkout_id = %(checkout)s",
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
    *BLIND_SPOTS,
]


def tamper(checkout: Checkout, sql: str) -> None:
    without_guards(sql, checkout=checkout.pk, payment=checkout.payment_id)


def prove(*arguments: str) -> tuple[int, str, str]:
    """Run `prove_ledger`, and return its exit code, output and error output."""
    said, complained = StringIO(), StringIO()
    try:
        call_command("prove_ledger", *arguments, stdout=said, stderr=complained)
    except SystemExit as ended:
        return int(str(ended.code)), said.getvalue(), complained.getvalue()
    return 0, said.getvalue(), complained.getvalue()
