"""The SQL of this package: limits on cards and texts, sign-in codes, and functions that change append-only tables.

A limit allows n rows within a period. The nth newest row decides when the next row is allowed. If there are
fewer rows, the result is null.
"""

from functools import cache

from config.lib import quota


def _with_digests(template: str, names: tuple[str, ...], keys: int) -> str:
    """Replace each `{… digests}` in the template by placeholders for `keys` digests, with one digest per key."""
    for name in names:
        template = template.replace(f"{{{name} digests}}", quota.placeholders(name, keys))
    return template


# One statement reads all limits on declined cards, because they are checked twice for each card. With the ORM, each
# check needed three statements, and both checks cost as much as the rest of the page. A card was not refused if its
# payment is held or has gone further. It was not refused either if the reason for its decline does not count as a
# refusal by the bank.
_IS_NOT_REFUSED = """EXISTS (
    SELECT FROM payments_payment p WHERE p.subject = t.subject AND p.card_token = t.card_token
    AND (p.status NOT IN ('authorizing', 'declined') OR p.decline_reason = ANY(%(no_refusal)s)){more})"""
# Some earlier card attempts match the current attempt only by their site, which is a block of IPv6 addresses. Such an
# attempt stops counting only if its card paid. The declined card of a neighbour must still count, because
# `declines.was_tried_by` finds the owner of a card only through an attempt that counts.
_HAS_PAID = """EXISTS (
    SELECT FROM payments_payment p WHERE p.subject = t.subject AND p.card_token = t.card_token
    AND p.status NOT IN ('authorizing', 'declined'))"""
_CARD_LIMITS = """
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now){more}
SELECT now, (
    SELECT created_at FROM payments_payment
    WHERE subject = %(subject)s AND status = 'declined' AND decline_reason <> ALL(%(no_refusal)s)
        AND created_at > now - %(order_within)s
    ORDER BY created_at DESC OFFSET %(order_before)s LIMIT 1
), (
    SELECT created_at FROM hosted_page_cardtry t
    WHERE is_counted AND phone_digest IN ({phone digests}) AND created_at > now - %(phone_within)s AND NOT {good}
    ORDER BY created_at DESC OFFSET %(phone_before)s LIMIT 1
), (
    SELECT created_at FROM hosted_page_cardtry t
    WHERE is_counted AND address_digest IN ({address digests}) AND created_at > now - %(address_within)s AND NOT {good}
    ORDER BY created_at DESC OFFSET %(address_before)s LIMIT 1
), (
    SELECT created_at FROM hosted_page_cardtry t
    WHERE is_counted AND site_digest IN ({site digests}) AND NOT site_digest = '' AND created_at > now - %(site_within)s
        AND NOT {good}
    ORDER BY created_at DESC OFFSET %(site_before)s LIMIT 1
) FROM clock
""".replace("{good}", _IS_NOT_REFUSED.replace("{more}", ""))
# A statement does not see its own writes. It therefore reads the limits as they were before, and a condition
# leaves out the cards that were not refused. An abandoned card counts while its operation is open, because it
# can still be declined. If another transaction has locked the row of a card attempt, the next card attempt
# updates that row.
_COUNT_CARD = f""", ended AS (
    UPDATE hosted_page_cardtry SET is_counted = false WHERE id IN (
        SELECT id FROM hosted_page_cardtry t
        WHERE is_counted AND (phone_digest IN ({{phone digests}}) OR address_digest IN ({{address digests}})
            OR (site_digest IN ({{site digests}}) AND NOT site_digest = '' AND {_HAS_PAID})) AND {_IS_NOT_REFUSED}
        FOR NO KEY UPDATE SKIP LOCKED)
), made AS (
    INSERT INTO hosted_page_cardtry
        (id, subject, card_token, phone_digest, address_digest, site_digest, is_counted, created_at)
    SELECT %(id)s, %(subject)s, %(token)s, %(phone_0)s, %(address_0)s, %(site_0)s, true, now FROM clock
)""".replace("{more}", " AND p.status <> 'authorizing'")  # noqa: S608 - made only of our own constants


@cache
def compose_card_limits(keys: int, *, counts_card: bool) -> str:
    """Return the statement that reads the limits on declined cards, with `keys` digests of each value.

    If `counts_card` is true, the statement also inserts the new card attempt, and stops counting cards that
    were not refused.
    """
    template = _CARD_LIMITS.replace("{more}", _COUNT_CARD if counts_card else "")
    return _with_digests(template, ("phone", "address", "site"), keys)


# One statement reads all limits on texts.
_SMS_LIMIT = """(
    SELECT created_at FROM hosted_page_smsmessage
    WHERE {counted} AND created_at > now - %({name}_within)s
    ORDER BY created_at DESC OFFSET %({name}_before)s LIMIT 1
)"""
_SMS_COUNTED = {
    "code": "phone_digest IN ({phone_digest digests}) AND kind IN ('code', 'return')",
    "hour": "phone_digest IN ({phone_digest digests})",
    "day": "phone_digest IN ({phone_digest digests})",
    "address": "address_digest IN ({address_digest digests}) AND is_counted",
    "site": "site_digest IN ({site_digest digests}) AND NOT site_digest = '' AND is_counted",
    "range": "range_digest IN ({range_digest digests}) AND is_counted",
}


@cache
def compose_sms_limits(keys: int) -> str:
    """Return the statement that reads the limits on texts, with `keys` digests of each value."""
    limits = ", ".join(
        _SMS_LIMIT.format(name=name, counted=condition) for name, condition in _SMS_COUNTED.items()
    )
    template = f"""
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now) SELECT now, {limits} FROM clock
"""  # noqa: S608 - made only of our own constants
    return _with_digests(template, ("phone_digest", "address_digest", "site_digest", "range_digest"), keys)


# Both rows stay locked until the end of the transaction. The merchant's row is always locked first, to
# prevent deadlocks. INSERT is used only for the first message of a day. If the row exists, INSERT with ON
# CONFLICT would first lock it and then update it, and PostgreSQL would log both changes.
SPEND_SMS_BUDGETS = """
WITH counted AS (
    UPDATE hosted_page_smsday SET count = count + 1
    WHERE day = %(day)s AND merchant_id = %(merchant)s AND count < %(budget)s RETURNING id
), begun AS (
    INSERT INTO hosted_page_smsday AS d (id, day, merchant_id, count)
    SELECT %(id)s, %(day)s, %(merchant)s, 1 WHERE %(budget)s > 0 AND NOT EXISTS (SELECT FROM counted)
    ON CONFLICT (day, merchant_id) DO UPDATE SET count = d.count + 1 WHERE d.count < %(budget)s
    RETURNING id
), of_merchant AS (
    SELECT FROM counted UNION ALL SELECT FROM begun
), counted_of_all AS (
    UPDATE hosted_page_smsday SET count = count + 1
    WHERE day = %(day)s AND merchant_id IS NULL AND count < %(total)s AND EXISTS (SELECT FROM of_merchant)
    RETURNING id
), begun_of_all AS (
    INSERT INTO hosted_page_smsday AS d (id, day, merchant_id, count)
    SELECT %(id_of_all)s, %(day)s, NULL, 1 FROM of_merchant
    WHERE %(total)s > 0 AND NOT EXISTS (SELECT FROM counted_of_all)
    ON CONFLICT (day, merchant_id) DO UPDATE SET count = d.count + 1 WHERE d.count < %(total)s
    RETURNING id
) SELECT EXISTS (SELECT FROM of_merchant),
    EXISTS (SELECT FROM counted_of_all) OR EXISTS (SELECT FROM begun_of_all)
"""

END_SMS_MESSAGE = """
UPDATE hosted_page_smsmessage
SET due_at = NULL, phone = NULL, body = NULL, ended_at = statement_timestamp(),
    sent_at = CASE WHEN %(is_sent)s THEN statement_timestamp() END,
    claimed_at = CASE WHEN %(is_taken)s THEN claimed_at END,
    refusal = coalesce(nullif(%(refusal)s, ''), refusal)
WHERE id = %(id)s AND ended_at IS NULL
"""

END_SIGN_IN_CODES = """
UPDATE hosted_page_signincode SET expires_at = %(now)s
WHERE subject = %(subject)s AND browser_digest = %(browser)s AND expires_at > %(now)s RETURNING id
"""
# Parallel requests wait until the row is unlocked. PostgreSQL then checks the condition again, so each
# attempt is counted.
COUNT_SIGN_IN_TRY = """
UPDATE hosted_page_signincode
SET tries = tries + 1, used_at = CASE WHEN %(is_right)s THEN clock_timestamp() END
WHERE id = %(id)s AND used_at IS NULL AND tries < %(maximum)s AND expires_at > clock_timestamp()
RETURNING tries
"""

# These database functions belong to the owner of the tables, because the service itself can only append to
# them.
ADVANCE_HISTORY = "SELECT advance_history(%s, %s)"
ERASE_OPT_INS = "SELECT erase_opt_ins(%s::uuid[], %s)"
