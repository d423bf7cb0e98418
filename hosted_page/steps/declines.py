"""Limits on declined cards per order, phone and address, so that nobody tries out stolen ones here.

A try is written in the transaction that begins the card's operation, so that of a hundred at once each is counted. It
counts until its card is known to be good, which the next try of the same number or address finds out.
The sandbox's helper API has no such limits. Rule pay.declines.
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

# Reasons of declines that say nothing against the card itself.
SAME_CARD_MAY_DO = {"challenge_failed", "challenge_expired", "never_arrived"}
# Reasons that are no refusal of the bank's, and are not shown.
UNTOLD = {"another_card", "given_up", "order_ended"}
PER_ORDER = Limit(5, timedelta(hours=1))
PER_PHONE = Limit(10, timedelta(days=1))
PER_ADDRESS = Limit(30, timedelta(hours=1))
KEPT = timedelta(days=2)  # longer than any limit looks back


class TooManyDeclines(Exception):
    """So many cards were declined that they may be stolen ones; no card may be tried until `until`."""

    def __init__(self, until: datetime, now: datetime) -> None:
        super().__init__("Too many cards were declined.")
        self.until, self.now = until, now


class TooManyOfOrder(TooManyDeclines):
    """The declined cards were of this very order or share."""


def check(target: PaymentTarget, person: Customer, address: str) -> None:
    """Raise TooManyDeclines if no card may be tried now."""
    _decide(_LOOKING, _given(target, person, "", address))


def admit(target: PaymentTarget, person: Customer, token: str, address: str) -> None:
    """Count a card that is about to be tried, in the transaction that begins its operation. Raises TooManyDeclines."""
    given = _given(target, person, token, address)
    quota.lock_digests("card", *given.phones, *given.addresses, *given.sites)
    _decide(_ADMITTING, given)


def was_tried_by(person: Customer, payment: Payment) -> bool:
    """Whether it was this person who gave the payment's card, as far as its try still counts."""
    given = CardTry.objects.filter(phone_digest__in=digests(person.phone or ""), is_counted=True)
    return given.filter(subject=payment.subject, card_token=payment.card_token).exists()


def digests(phone: str) -> list[str]:
    """Return the digests by which the cards that a number has tried are counted, the one to write first."""
    return crypto.keyed_digests("card phone", phone)


def delete_old() -> None:
    """Delete the tries that no limit looks at any more."""
    batches.delete(CardTry.objects.filter(pk__lt=clock.first_id(clock.now() - KEPT)))


class _Given(NamedTuple):
    """A card that is given: for what, and the digests by which it is counted, the ones to write first."""

    subject: UUID
    token: str
    phones: list[str]
    addresses: list[str]
    sites: list[str]


def _given(target: PaymentTarget, person: Customer, token: str, address: str) -> _Given:
    found = network.digests("card address", address)
    phones = digests(person.phone or "")
    return _Given(target.subject, token, phones, found["address_digest"], found["site_digest"])


def _decide(template: str, given: _Given) -> None:
    """Run a statement that looks at the limits. Raises TooManyDeclines unless one more card may be tried now."""
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
    """Return a statement below for as many digests of each value as there are keys."""
    for name in ("phone", "address", "site"):
        template = template.replace(f"{{{name} digests}}", quota.placeholders(name, keys))
    return template


def _limits() -> dict[str, Limit]:
    """Return the limits by their names in the statements below, in the order of the columns."""
    return {"order": PER_ORDER, "phone": PER_PHONE, "address": PER_ADDRESS, "site": PER_ADDRESS.of_site()}


def _asked(given: _Given) -> dict[str, Any]:
    """Return the parameters of the statements below, in which a limit is its length and how many may be before."""
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


# Plain SQL in one statement: the ORM built three, twice for each card, which cost as much as the rest of the page.
# A card is good once its payment is held or more, or was declined for what says nothing against it.
_GOOD = """EXISTS (
    SELECT FROM payments_payment p WHERE p.subject = t.subject AND p.card_token = t.card_token
    AND (p.status NOT IN ('authorizing', 'declined') OR p.decline_reason = ANY(%(no_refusal)s)){more})"""
# Of a whole site, only cards that paid end: a neighbour's declined card is still shown to its owner (`was_tried_by`).
_PAID = """EXISTS (
    SELECT FROM payments_payment p WHERE p.subject = t.subject AND p.card_token = t.card_token
    AND p.status NOT IN ('authorizing', 'declined'))"""
# The row that decides: the oldest of as many as there may be, None if there are fewer.
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
# What it writes it does not see: the limits are looked at as they stood before, good cards left out by themselves.
# One that is only given up may yet be declined; a row that another transaction holds is left to the next try.
_ADMITTING = _LIMITS.replace(
    "{more}",
    f""", ended AS (
    UPDATE hosted_page_cardtry SET is_counted = false WHERE id IN (
        SELECT id FROM hosted_page_cardtry t
        WHERE is_counted AND (phone_digest IN ({{phone digests}}) OR address_digest IN ({{address digests}})
            OR (site_digest IN ({{site digests}}) AND NOT site_digest = '' AND {_PAID})) AND {_GOOD}
        FOR UPDATE SKIP LOCKED)
), made AS (
    INSERT INTO {CardTry().table_of_new()}
        (id, subject, card_token, phone_digest, address_digest, site_digest, is_counted, created_at)
    SELECT %(id)s, %(subject)s, %(token)s, %(phone_0)s, %(address_0)s, %(site_0)s, true, now FROM clock
)""".replace("{more}", " AND p.status <> 'authorizing'"),  # noqa: S608 - of our own constants alone
)
