"""Limits on declined cards per order, number and address, against tests of stolen cards (rule pay.declines).

A try is written in the transaction that begins the card's operation, so that parallel tries are all counted.
A try counts until its card is known to be good. The next try of the same number or address checks this. The
helper API of the sandbox has no such limits.
"""

from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from checkout.models import Customer
from config.lib import batches, clock, crypto, quota
from config.lib.quota import Limit
from config.lib.web import address as network
from hosted_page.models import CardTry
from hosted_page.payment_target import PaymentTarget
from payments.models import Payment

# Reasons of declines after which the same card can still work.
SAME_CARD_MAY_DO = {"challenge_failed", "challenge_expired", "never_arrived"}
# Reasons that are not refusals by the bank. The page does not show them.
UNTOLD = {"another_card", "given_up", "order_ended"}
PER_ORDER = Limit(5, timedelta(hours=1))
PER_PHONE = Limit(10, timedelta(days=1))
PER_ADDRESS = Limit(30, timedelta(hours=1))
KEPT = timedelta(days=2)  # longer than the period of any limit


class TooManyDeclines(Exception):
    """So many cards were declined that they might be stolen. No card can be tried before `until`."""

    def __init__(self, until: datetime, now: datetime) -> None:
        super().__init__("Too many cards were declined.")
        self.until, self.now = until, now


class TooManyOfOrder(TooManyDeclines):
    """Too many cards were declined for this order or share."""


def check(target: PaymentTarget, person: Customer, address: str) -> None:
    """Raise TooManyDeclines if no card can be tried now."""
    _decide(_LOOKING, _given(target, person, "", address))


def admit(target: PaymentTarget, person: Customer, token: str, address: str) -> None:
    """Count a card that is about to be tried. Raises TooManyDeclines.

    Call it in the transaction that begins the card's operation.
    """
    given = _given(target, person, token, address)
    quota.lock_digests("card", *given.phones, *given.addresses, *given.sites)
    _decide(_ADMITTING, given)


def was_tried_by(person: Customer, payment: Payment) -> bool:
    """Return whether this person used the payment's card. Only a try that still counts is found."""
    given = CardTry.objects.filter(phone_digest__in=number_digests(person.phone or ""), is_counted=True)
    return given.filter(subject=payment.subject, card_token=payment.card_token).exists()


def number_digests(phone: str) -> list[str]:
    """Return the digests by which a number's card tries are counted. New rows store the first one."""
    return crypto.keyed_digests("card phone", phone)


def delete_old() -> None:
    """Delete the tries that are too old for all limits."""
    batches.delete(CardTry.objects.filter(pk__lt=clock.first_id(clock.now() - KEPT)))


class _Given(NamedTuple):
    """A card token, its order or share, and the digests by which it is counted.

    New rows store the first ones.
    """

    subject: UUID
    token: str
    phones: list[str]
    addresses: list[str]
    sites: list[str]


def _given(target: PaymentTarget, person: Customer, token: str, address: str) -> _Given:
    found = network.caller_digests("card address", address)
    phones = number_digests(person.phone or "")
    return _Given(target.subject, token, phones, found["address_digest"], found["site_digest"])


def _decide(template: str, given: _Given) -> None:
    """Run a statement that checks the limits. Raises TooManyDeclines if no further card can be tried now."""
    with connection.cursor() as cursor:
        cursor.execute(_statement(template, len(given.phones)), _asked(given))
        now, *deciding = cursor.fetchone()
    of_order, of_phone, of_address, of_site = (
        at and at + limit.within for at, limit in zip(deciding, _limits().values(), strict=True)
    )
    if of_order is not None:
        raise TooManyOfOrder(of_order, now)
    if until := of_phone or of_address or of_site:
        raise TooManyDeclines(until, now)


@cache
def _statement(template: str, keys: int) -> str:
    """Return a statement below for this number of digests of each value, one per key."""
    for name in ("phone", "address", "site"):
        template = template.replace(f"{{{name} digests}}", quota.placeholders(name, keys))
    return template


def _limits() -> dict[str, Limit]:
    """Return the limits by their names in the statements below, in the order of the columns."""
    return {"order": PER_ORDER, "phone": PER_PHONE, "address": PER_ADDRESS, "site": PER_ADDRESS.of_site()}


def _asked(given: _Given) -> dict[str, Any]:
    """Return the parameters of the statements below.

    For a limit, these are its period (`within`) and the number of newer tries before the one that decides
    (`before`).
    """
    return {
        "id": CardTry().pk,
        "subject": given.subject,
        "token": given.token,
        **quota.parameters("phone", given.phones),
        **quota.parameters("address", given.addresses),
        **quota.parameters("site", given.sites),
        "no_refusal": [*UNTOLD, *SAME_CARD_MAY_DO],
        **{f"{name}_within": limit.within for name, limit in _limits().items()},
        **{f"{name}_before": limit.maximum - 1 for name, limit in _limits().items()},
    }


# Plain SQL in one statement: the ORM's three statements, twice for each card, cost as much as the rest of the
# page. A card is good if its payment is held or has gone further, or if its decline has one of the reasons
# above.
_GOOD = """EXISTS (
    SELECT FROM payments_payment p WHERE p.subject = t.subject AND p.card_token = t.card_token
    AND (p.status NOT IN ('authorizing', 'declined') OR p.decline_reason = ANY(%(no_refusal)s)){more})"""
# For tries that are found only by their site (a block of IPv6 addresses), only cards that paid stop counting.
# A neighbour's declined card must still count, because `was_tried_by` finds a card's owner only by a try that
# counts.
_PAID = """EXISTS (
    SELECT FROM payments_payment p WHERE p.subject = t.subject AND p.card_token = t.card_token
    AND p.status NOT IN ('authorizing', 'declined'))"""
# For a limit of n tries, the nth newest try decides. If there are fewer, no row decides, and the result is
# null.
_LIMITS = """
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
""".replace("{good}", _GOOD.replace("{more}", ""))
_LOOKING = _LIMITS.replace("{more}", "")
# The statement does not see its own writes: it reads the limits as they were before, and leaves out good
# cards by its own condition. A card that was only given up is not ended here, because it can still be
# declined. A row that another transaction has locked is left to the next try.
_ADMITTING = _LIMITS.replace(
    "{more}",
    f""", ended AS (
    UPDATE hosted_page_cardtry SET is_counted = false WHERE id IN (
        SELECT id FROM hosted_page_cardtry t
        WHERE is_counted AND (phone_digest IN ({{phone digests}}) OR address_digest IN ({{address digests}})
            OR (site_digest IN ({{site digests}}) AND NOT site_digest = '' AND {_PAID})) AND {_GOOD}
        FOR NO KEY UPDATE SKIP LOCKED)
), made AS (
    INSERT INTO {CardTry._meta.db_table}
        (id, subject, card_token, phone_digest, address_digest, site_digest, is_counted, created_at)
    SELECT %(id)s, %(subject)s, %(token)s, %(phone_0)s, %(address_0)s, %(site_0)s, true, now FROM clock
)""".replace("{more}", " AND p.status <> 'authorizing'"),  # noqa: S608 - of our own constants only
)
