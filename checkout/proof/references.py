"""References that no foreign key enforces, and the rows that break them (rule money.proof).

A foreign key would lead into or out of a partition, or would lock the row that it refers to. A row and the
row that it refers to were made at about the same time. A proof of new rows therefore reads no old ones.
"""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from config.lib import clock
from payments.discrepancies import kinds
from payments.discrepancies.definitions import DiscrepancyKind


class Reference(NamedTuple):
    """Kind of discrepancy that a breach is, and the query for the subjects and their merchants."""

    kind: DiscrepancyKind
    sql: str


_OF_A_MERCHANT = (
    "webhooks_event",
    "checkout_apicall",
    "checkout_checkout",
    "payments_payment",
    "payments_posting",
)
_OF_NOBODY = """
        SELECT t.id, NULL FROM {table} t LEFT JOIN payments_merchant m ON m.id = t.merchant_id
        WHERE t.id BETWEEN %(first)s AND %(last)s AND m.id IS NULL"""
REFERENCES = (
    Reference(
        kinds.LEDGER_MERCHANT_MISSING,
        "\nUNION ALL".join(_OF_NOBODY.replace("{table}", table) for table in _OF_A_MERCHANT),
    ),
    Reference(
        kinds.LEDGER_EVENT_MISSING,
        """
        SELECT d.event_id, d.merchant_id FROM webhooks_delivery d
        LEFT JOIN webhooks_event e ON e.id = d.event_id AND e.id BETWEEN %(earliest)s AND %(latest)s
          AND (e.merchant_id, e.type) = (d.merchant_id, d.event_type)
        WHERE d.id BETWEEN %(first)s AND %(last)s AND e.id IS NULL""",
    ),
    Reference(
        kinds.LEDGER_SUBSCRIPTION_MISSING,
        """
        SELECT d.event_id, d.merchant_id FROM webhooks_delivery d
        LEFT JOIN webhooks_subscription s ON s.id = d.subscription_id AND s.merchant_id = d.merchant_id
        WHERE d.id BETWEEN %(first)s AND %(last)s AND s.id IS NULL""",
    ),
    Reference(
        kinds.LEDGER_DELIVERED_TWICE,
        """
        SELECT waiting.event_id, waiting.merchant_id FROM webhooks_delivery_pending waiting
        JOIN webhooks_delivery_ended ended USING (event_id, subscription_id)
        WHERE waiting.id BETWEEN %(first)s AND %(last)s AND ended.id BETWEEN %(earliest)s AND %(latest)s""",
    ),
    Reference(
        kinds.LEDGER_DELIVERY_MISSING,
        """
        SELECT a.delivery_id, a.merchant_id FROM webhooks_attempt a
        LEFT JOIN webhooks_delivery d ON d.id = a.delivery_id AND d.id BETWEEN %(earliest)s AND %(latest)s
          AND (d.merchant_id, d.event_type) = (a.merchant_id, a.event_type)
        WHERE a.id BETWEEN %(first)s AND %(last)s AND d.id IS NULL""",
    ),
)


class Lost(NamedTuple):
    """Row that breaks a reference. `subject` is the missing id, the row's id or its event's id."""

    subject: UUID
    merchant_uuid: UUID | None
    reference: Reference


def lost(first: UUID, last: UUID) -> Iterator[Lost]:
    """Yield the orphan rows with ids of this range.

    The rows that they refer to are looked for only among ids of the same time.
    """
    within = {"first": first, "last": last}
    within |= {"earliest": clock.first_id_with(first), "latest": clock.last_id_with(last)}
    with connection.cursor() as cursor:
        for reference in REFERENCES:
            cursor.execute(reference.sql, within)
            for subject, merchant_uuid in cursor.fetchall():
                yield Lost(subject, merchant_uuid, reference)
