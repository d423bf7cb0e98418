"""Limits on declined cards per order, phone and address, so that nobody tries out stolen ones here.

A try is written in the transaction that begins the card's operation, so that of a hundred at once each is counted. It
counts until its card is known to be good, which the next try of the same number or address finds out.
The sandbox's helper API has no such limits. Rule pay.declines.
"""

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

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
    _check(target, _try_of(target, person, "", address))


def admit(target: PaymentTarget, person: Customer, token: str, address: str) -> None:
    """Count a card that is about to be tried, in the transaction that begins its operation. Raises TooManyDeclines."""
    made = _try_of(target, person, token, address)
    quota.lock(f"card:{made.phone_digest}", f"card:{made.address_digest}")
    _end_good(Q(phone_digest=made.phone_digest) | Q(address_digest=made.address_digest))
    made.created_at = _check(target, made)
    made.save(force_insert=True)


def _end_good(alike: Q) -> None:
    """Stop counting tries whose card is good for good; one that is only given up may yet be declined.

    A row that another transaction holds is left to the next try, so that nobody waits for anybody.
    """
    good = Exists(_good().exclude(status=Payment.Status.AUTHORIZING))
    free = CardTry.objects.filter(alike, good, is_counted=True).select_for_update(
        skip_locked=True, of=("self",)
    )
    CardTry.objects.filter(pk__in=[made.pk for made in free.only("pk")]).update(is_counted=False)


def digest(phone: str) -> str:
    """Return the digest by which the cards that a number has tried are counted."""
    return crypto.keyed_digest("card phone", phone)


def delete_old() -> None:
    """Delete the tries that no limit looks at any more."""
    batches.delete(CardTry.objects.filter(created_at__lt=clock.now() - KEPT))


def _try_of(target: PaymentTarget, person: Customer, token: str, address: str) -> CardTry:
    return CardTry(
        subject=target.subject,
        card_token=token,
        phone_digest=digest(person.phone or ""),
        address_digest=crypto.keyed_digest("card address", network.network(address)),
    )


def _check(target: PaymentTarget, made: CardTry) -> datetime:
    """Return the time if one more card may be tried now. Raises TooManyDeclines."""
    now = clock.now()
    of_order = Payment.objects.filter(subject=target.subject, status=Payment.Status.DECLINED)
    declined = of_order.exclude(decline_reason__in=[*UNTOLD, *SAME_CARD_MAY_DO])
    until = quota.free_at(declined, PER_ORDER, now)
    if until is not None:
        raise TooManyOfOrder(until, now)
    of_phone = _bad(CardTry.objects.filter(phone_digest=made.phone_digest))
    of_address = _bad(CardTry.objects.filter(address_digest=made.address_digest))
    until = quota.free_at(of_phone, PER_PHONE, now) or quota.free_at(of_address, PER_ADDRESS, now)
    if until is not None:
        raise TooManyDeclines(until, now)
    return now


def _bad(tries: QuerySet[CardTry]) -> QuerySet[CardTry]:
    """Return the tries that were declined, or whose outcome is not known yet."""
    return tries.filter(is_counted=True).exclude(Exists(_good()))


def _good() -> QuerySet[Payment]:
    """Return the payment of a try whose card the bank has not declined; one in doubt is no such payment."""
    tried = Payment.objects.filter(subject=OuterRef("subject"), card_token=OuterRef("card_token"))
    undecided = (Payment.Status.AUTHORIZING, Payment.Status.DECLINED)
    return tried.filter(~Q(status__in=undecided) | Q(decline_reason__in=[*UNTOLD, *SAME_CARD_MAY_DO]))
