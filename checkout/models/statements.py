"""SQL statements that create, move, update and read checkouts, and that queue messages to the lead."""

from collections.abc import Iterable, Mapping

# A single statement inserts all rows. The ORM would need one statement for each table.
INSERT_CHECKOUT = """
WITH made AS (
    INSERT INTO checkout_checkout (id, merchant_id, merchant_order_id, status, amount, currency, metadata, return_url,
        cancel_url, created_at, updated_at, expires_at, payable_until, void_reason, cancel_note, refunded_amount)
    VALUES (%(id)s, %(merchant_id)s, %(merchant_order_id)s, 'created', %(amount)s, %(currency)s, %(metadata)s,
        %(return_url)s, %(cancel_url)s, statement_timestamp(), statement_timestamp(), %(expires_at)s,
        coalesce(%(expires_at)s::timestamptz, statement_timestamp() + %(lifetime)s), '', '', 0)
    RETURNING id, created_at, payable_until
),
bill AS (
    INSERT INTO checkout_bill (checkout_id, lines) SELECT id, %(lines)s::jsonb FROM made
),
history AS (
    INSERT INTO checkout_change (id, checkout_id, origin, "to", actor, request_id, created_at)
    SELECT %(change_id)s, id, '', 'created', %(actor)s, %(request_id)s, created_at FROM made
)
SELECT created_at, payable_until FROM made
"""
# This is plain SQL, because it runs for every change of status. The ORM would build two statements each time.
_MOVE_CHECKOUTS = """
WITH moved AS (
    UPDATE checkout_checkout SET status = %(status)s, updated_at = statement_timestamp(){facts}
    WHERE id = ANY(%(ids)s::uuid[])
)
INSERT INTO checkout_change (id, checkout_id, origin, "to", actor, request_id, created_at)
SELECT change_id, checkout_id, origin, %(status)s, %(actor)s, %(request_id)s, at
FROM unnest(%(changes)s::uuid[], %(ids)s::uuid[], %(origins)s::text[], %(ats)s::timestamptz[])
    AS change (change_id, checkout_id, origin, at)
"""
# With json, the driver parses the lines. With jsonb, Django would check and parse each row itself.
BILL_LINES = "(SELECT lines::json FROM checkout_bill WHERE checkout_id = checkout_checkout.id)"
# If a message is queued again, its row gets a new id, because a new text message will be sent.
QUEUE_LEAD_NOTIFICATION = """
INSERT INTO checkout_leadnotification (id, checkout_id, kind, share_uuid, due_at) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (checkout_id, kind, share_uuid)
DO UPDATE SET id = excluded.id, due_at = excluded.due_at, ended_at = NULL
"""


def move_statement(values: Mapping[str, str]) -> str:
    """Return the statement that changes the status of checkouts.

    `values` contains the other columns to change. Each column is mapped to the SQL for its new value, which is a
    parameter or another column.
    """
    facts = "".join(f", {column} = {value}" for column, value in values.items())
    return _MOVE_CHECKOUTS.replace("{facts}", facts)


def update_statement(columns: Iterable[str], *, is_shown: bool) -> str:
    """Return the statement that writes these columns of a checkout.

    If `is_shown` is true, it also sets `updated_at`, because the API shows the change.
    """
    facts = ["updated_at = statement_timestamp()"] if is_shown else []
    facts += [f"{column} = %({column})s" for column in columns]
    return f"UPDATE checkout_checkout SET {', '.join(facts)} WHERE id = %(id)s"  # noqa: S608 - only our names
