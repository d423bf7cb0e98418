"""SQL statements for the merchant API. They write calls with their stored answers, and read the parts of a checkout."""

from collections.abc import Sequence

API_CALL_COLUMNS = (
    *("id", "merchant_id", "client_uuid", "checkout_uuid", "method", "path", "request_id", "status"),
    *("error_code", "param", "ignored_fields", "duration_ms"),
)
INSERT_API_CALL = f"""
INSERT INTO checkout_apicall ({", ".join(API_CALL_COLUMNS)}, created_at)
VALUES ({", ".join(f"%({name})s" for name in API_CALL_COLUMNS)}, statement_timestamp())
"""  # noqa: S608 - built from constants only
# One statement writes both the call and its answer. This needs only one commit, and the timeline always agrees
# with the stored answer.
INSERT_API_CALL_AND_STORE_ANSWER = f"""
WITH called AS ({INSERT_API_CALL})
UPDATE checkout_idempotencykey SET status = %(status)s, checkout_uuid = %(checkout_uuid)s, body = %(body)s
WHERE id = %(key)s
"""  # noqa: S608 - built from constants only
INSERT_API_CALL_AND_FREE_KEY = f"""
WITH called AS ({INSERT_API_CALL})
DELETE FROM checkout_idempotencykey WHERE id = %(key)s
"""  # noqa: S608 - built from constants only
_JSON_LIST = """(
    SELECT coalesce(json_agg(json_build_object({fields}) ORDER BY {order}), '[]')
    FROM (SELECT * FROM {table} WHERE {of} = checkout_checkout.id AND {condition} ORDER BY {order} LIMIT 100)
    of_checkout)"""


def json_list(table: str, columns: Sequence[str], order: str, *, of: str, condition: str) -> str:
    """Return the query that reads the first hundred rows that a table has about a checkout, as one JSON list.

    `of` is the column that contains the checkout's id. The list has only the rows that fulfil `condition`. The number
    of rows is limited, because a checkout can have any number of refunds.
    """
    fields = ", ".join(f"'{column}', {column}" for column in columns)
    query = _JSON_LIST.replace("{fields}", fields).replace("{table}", table).replace("{order}", order)
    return query.replace("{of}", of).replace("{condition}", condition)
