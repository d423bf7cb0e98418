"""Limits declined cards per order, number and address, to prevent tests of stolen cards (rule pay.declines).

Each entered card is a row, called an attempt. It is written in the transaction that begins the card's
operation, so that parallel attempts all count. An attempt counts until the service knows that the card was
not refused. The next attempt from the same number or address checks this. The helper API has no such limits.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef

from checkout.models import Customer, PaymentRequest
from config.lib import batches, clock, crypto, quota
from config.lib.database import queries
from config.lib.quota import Limit
from config.lib.web import address as network
from hosted_page import statements
from hosted_page.models import CardTry
from hosted_page.payment_target import PaymentTarget
from payments.models import Payment

# After a decline for one of these reasons, the same card can still succeed later.
RETRIABLE_REASONS = {"challenge_failed", "challenge_expired", "never_arrived"}
# With these reasons, the bank did not refuse the card. The page does not show them.
HIDDEN_REASONS = {
    *("another_card", "given_up", "not_taken", "order_ended"),
    *("pledge_ended", "shop_stopped", "withdrawn"),
}
PER_ORDER = Limit(5, timedelta(hours=1))
PER_PHONE = Limit(10, timedelta(days=1))
PER_ADDRESS = Limit(30, timedelta(hours=1))
# A pledge only holds a card, so stolen cards could be tested for free without stricter limits (rule pledge.cards).
PER_PLEDGE = Limit(3, timedelta(days=1))
PER_PHONE_OF_PLEDGE = Limit(5, timedelta(days=1))
RETENTION = timedelta(days=2)  # how long an attempt is kept; must exceed the period of every limit


class TooManyDeclines(Exception):
    """So many cards were declined that they might be stolen. The next card is allowed at `until`."""

    def __init__(self, until: datetime, now: datetime) -> None:
        super().__init__("Too many cards were declined.")
        self.until, self.now = until, now


class TooManyOfOrder(TooManyDeclines):
    """Too many cards were declined for this order or share."""


class TooManyOfPledge(TooManyDeclines):
    """Too many cards were used for pledges, by this person or for this share. A bank might have accepted them all."""


def check_limits(target: PaymentTarget, person: Customer, address: str) -> None:
    """Raise TooManyDeclines if no card is allowed now."""
    card_try = _counted_try(target, person, "", address)
    _run_limit_check(statements.compose_card_limits(len(card_try.phones), counts_card=False), card_try)
    if target.is_pledge:
        _check_pledge_limits(card_try)


def count_card_try(target: PaymentTarget, person: Customer, token: str, address: str) -> None:
    """Count a card that is about to be charged or held. Raises TooManyDeclines.

    Call this in the transaction that begins the card's operation.
    """
    card_try = _counted_try(target, person, token, address)
    quota.lock_digests("card", *card_try.phones, *card_try.addresses, *card_try.sites)
    if target.is_pledge:
        _check_pledge_limits(card_try)
    _run_limit_check(statements.compose_card_limits(len(card_try.phones), counts_card=True), card_try)


def _check_pledge_limits(card_try: "_CountedTry") -> None:
    """Raise TooManyOfPledge if too many cards were used for pledges within a day, whether declined or not."""
    now = clock.now()
    share_tries = CardTry.objects.filter(subject=card_try.subject)
    if until := quota.locked_until(share_tries, PER_PLEDGE, now):
        raise TooManyOfPledge(until, now)
    shares = PaymentRequest.every.filter(pk=OuterRef("subject"))
    # Before the capture, mates can only pledge. The attempts of orders that have ended count too, so that a new order
    # does not allow further cards.
    pledged = shares.exclude(checkout__captured_at__lte=OuterRef("created_at"))
    phone_tries = CardTry.objects.filter(Exists(pledged), phone_digest__in=card_try.phones)
    if until := quota.locked_until(phone_tries, PER_PHONE_OF_PLEDGE, now):
        raise TooManyOfPledge(until, now)


def was_tried_by(person: Customer, payment: Payment) -> bool:
    """Return whether this person used the payment's card, as far as the counted attempts show it."""
    tries = CardTry.objects.filter(phone_digest__in=number_digests(person.phone or ""), is_counted=True)
    return tries.filter(subject=payment.subject, card_token=payment.card_token).exists()


def number_digests(phone: str) -> list[str]:
    """Return the digests by which the card attempts of a number are counted. New rows store the first digest."""
    return crypto.keyed_digests("card phone", phone)


def delete_old() -> None:
    """Delete the attempts that are so old that no limit counts them."""
    batches.delete(CardTry.objects.filter(pk__lt=clock.first_id(clock.now() - RETENTION)))


class _CountedTry(NamedTuple):
    """A card token, its order or share, and the digests by which the attempt is counted.

    New rows store the first digest in each list. `limits` maps the name of each limit in the statement to the
    limit, in the same order as the statement's columns.
    """

    limits: dict[str, Limit]
    subject: UUID
    token: str
    phones: list[str]
    addresses: list[str]
    sites: list[str]


def _counted_try(target: PaymentTarget, person: Customer, token: str, address: str) -> _CountedTry:
    digests = network.caller_digests("card address", address)
    phones = number_digests(person.phone or "")
    limits = _limits(is_pledge=target.is_pledge)
    return _CountedTry(
        limits, target.subject, token, phones, digests["address_digest"], digests["site_digest"]
    )


def _run_limit_check(statement: str, card_try: _CountedTry) -> None:
    """Run a statement that checks the limits. Raises TooManyDeclines if no further card is allowed now."""
    now, *deciding_times = queries.row(statement, _statement_parameters(card_try))
    order_until, phone_until, address_until, site_until = (
        at and at + limit.within for at, limit in zip(deciding_times, card_try.limits.values(), strict=True)
    )
    if order_until is not None:
        raise TooManyOfOrder(order_until, now)
    if until := phone_until or address_until or site_until:
        raise TooManyDeclines(until, now)


def _limits(*, is_pledge: bool) -> dict[str, Limit]:
    address_limits = {"address": PER_ADDRESS, "site": PER_ADDRESS.of_site()}
    if is_pledge:
        return {"order": PER_PLEDGE, "phone": PER_PHONE_OF_PLEDGE} | address_limits
    return {"order": PER_ORDER, "phone": PER_PHONE} | address_limits


def _statement_parameters(card_try: _CountedTry) -> dict[str, Any]:
    """Return the parameters of the statement.

    Each limit has two parameters: `within` is its period, and `before` is how many of the newest attempts are
    skipped. The next older attempt decides whether the limit is reached.
    """
    return {
        "id": CardTry().pk,
        "subject": card_try.subject,
        "token": card_try.token,
        **quota.parameters("phone", card_try.phones),
        **quota.parameters("address", card_try.addresses),
        **quota.parameters("site", card_try.sites),
        "no_refusal": [*HIDDEN_REASONS, *RETRIABLE_REASONS],
        **{f"{name}_within": limit.within for name, limit in card_try.limits.items()},
        **{f"{name}_before": limit.maximum - 1 for name, limit in card_try.limits.items()},
    }
