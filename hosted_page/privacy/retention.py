"""Limits the retention of personal data: people are erased 25 months after their last order, card details later.

Card details are erased when their payments can no longer be disputed. Each night, people are erased one after
another until a time limit is reached. If a person cannot be erased yet, the service continues with the
others, and tries this person again the next night. Rules privacy.retention, privacy.cards.
"""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeVar

import structlog
from django.conf import settings
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from checkout.models import Checkout, Customer, MerchantCustomer, PaymentRequest
from config.lib import batches, clock
from hosted_page.models import OptIn
from hosted_page.privacy import data_subjects, erasure
from hosted_page.privacy.data_subjects import Person
from payments.models import Payment

log = structlog.get_logger("hosted_page.privacy")
# A payment can be disputed for thirteen months. During this time, operators must be able to find a card by
# its last 4 digits.
MAX_DISPUTE_AGE = timedelta(days=400)
SECONDS = 600.0  # per night and kind of row; enough for tens of thousands of rows
M = TypeVar("M", bound=Model)


def erase_old() -> int:
    """Erase people whose last order is older than settings.PERSON_RETENTION. Return how many were erased.

    Also erase the names and numbers on shares of the same age, and the card details of people who were erased
    earlier.
    """
    now = clock.now()
    before = now - settings.PERSON_RETENTION
    erased = sum(
        _erase_person(data_subjects.of_customer(row.pk), before)
        for row in _limit_time(_old_customers(before))
    )
    erased += sum(_erase_person(Person(None, [row]), before) for row in _limit_time(_old_addresses(before)))
    first = clock.first_id(before)
    batches.update(PaymentRequest.every.filter(pk__lt=first).exclude(name=""), name="")
    batches.update(PaymentRequest.every.filter(pk__lt=first).exclude(phone=""), phone="")
    for customer in _limit_time(_customers_with_old_cards(now - MAX_DISPUTE_AGE)):
        _erase_cards(customer, now)
    log.info("people erased", count=erased)
    return erased


def _limit_time(rows: QuerySet[M]) -> Iterator[M]:
    """Yield the rows until the time limit is reached. The remaining rows wait for the next night."""
    end = time.monotonic() + SECONDS
    return takewhile(lambda _: time.monotonic() < end, batches.iterate(rows))


def _old_customers(before: datetime) -> QuerySet[Customer]:
    recent_orders = Checkout.objects.filter(lead=OuterRef("pk"), created_at__gte=before)
    recent_shares = PaymentRequest.every.filter(mate=OuterRef("pk"), created_at__gte=before)
    customers = Customer.objects.filter(erased_at=None, pk__lt=clock.first_id(before), created_at__lt=before)
    return customers.exclude(Exists(recent_orders)).exclude(Exists(recent_shares))


def _old_addresses(before: datetime) -> QuerySet[MerchantCustomer]:
    """Return customers who are known only by an e-mail address, and whose last opt-in is older than `before`."""
    opt_ins = OptIn.objects.filter(person=OuterRef("pk"))
    customers = MerchantCustomer.objects.filter(customer=None).filter(
        Exists(opt_ins.exclude(email_digest=""))
    )
    return customers.exclude(Exists(opt_ins.filter(opted_in_at__gte=before)))


def _customers_with_old_cards(before: datetime) -> QuerySet[Customer]:
    """Return the erased customers who have card details and have made no payment since `before`.

    The query leaves out all other customers, because reading them would use up the time limit of the night.
    """
    has_recent_payment = Exists(Payment.objects.filter(subject=OuterRef("pk"), created_at__gte=before))
    recent_orders = Checkout.objects.filter(has_recent_payment, lead=OuterRef("pk"))
    recent_shares = PaymentRequest.every.filter(has_recent_payment, mate=OuterRef("pk"))
    customers = Customer.objects.filter(erased_at__isnull=False, cards_erased_at=None)
    return customers.exclude(Exists(recent_orders)).exclude(Exists(recent_shares))


def _erase_person(person: Person, before: datetime) -> bool:
    try:
        # This erasure need not be recorded in the file. After a restore, this task finds the person again,
        # because their last order is old.
        erasure.erase(person, is_recorded=False, unless_ordered_since=before)
    except erasure.StillNeeded as needed:
        log.warning("person not erased", reasons=needed.reasons)
        return False
    return True


def _erase_cards(customer: Customer, now: datetime) -> None:
    """Delete the last 4 digits and the fingerprint of all the person's cards."""
    orders = Checkout.objects.filter(lead=customer).values("pk")
    shares = PaymentRequest.every.filter(mate=customer).values("pk")
    payments = Payment.objects.filter(Q(subject__in=orders) | Q(subject__in=shares))
    payments.update(card_last4="", card_fingerprint="")
    Customer.objects.filter(pk=customer.pk).update(cards_erased_at=now)
