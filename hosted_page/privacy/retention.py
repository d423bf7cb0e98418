"""Erases people 25 months after their last order, and their card details once no dispute can come any more.

In small steps; whoever is still needed is tried again the next night. Rules privacy.retention, privacy.cards.
"""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from checkout.models import Checkout, Customer, MerchantCustomer, PaymentRequest
from config.lib import batches, clock
from hosted_page.models import OptIn
from hosted_page.privacy import erasing, people
from hosted_page.privacy.people import Person
from payments.models import Payment

log = structlog.get_logger("hosted_page.privacy")
DISPUTES_LAST = timedelta(days=400)  # thirteen months: until then a card must be found again by its last 4
ROWS = 1000  # people a night


def erase_old() -> int:
    """Erase people whose last order is older than settings.PERSON_RETENTION, and card details of people erased earlier.

    Returns how many people were erased.
    """
    now = clock.now()
    before = now - settings.PERSON_RETENTION
    erased = sum(_erase(people.of_customer(pk), before) for pk in _old_customers(before))
    erased += sum(_erase(Person(None, [row]), before) for row in _old_addresses(before))
    first = clock.first_id(before)
    batches.update(PaymentRequest.objects.filter(pk__lt=first).exclude(name=""), name="")
    batches.update(PaymentRequest.objects.filter(pk__lt=first).exclude(phone=""), phone="")
    for customer in Customer.objects.filter(erased_at__isnull=False, cards_erased_at=None)[:ROWS]:
        _erase_cards(customer, now)
    log.info("people erased", count=erased)
    return erased


def _old_customers(before: datetime) -> list[UUID]:
    led = Checkout.objects.filter(led_by__customer=OuterRef("pk"), created_at__gte=before)
    paid = PaymentRequest.objects.filter(mate=OuterRef("pk"), created_at__gte=before)
    known = Customer.objects.filter(erased_at=None, pk__lt=clock.first_id(before), created_at__lt=before)
    return list(
        known.exclude(Exists(led)).exclude(Exists(paid)).order_by("pk").values_list("pk", flat=True)[:ROWS]
    )


def _old_addresses(before: datetime) -> list[MerchantCustomer]:
    """Return those who are known by an address alone, and have ticked nothing since."""
    ticks = OptIn.objects.filter(person=OuterRef("pk"))
    nameless = MerchantCustomer.objects.filter(customer=None).filter(Exists(ticks.exclude(email_digest="")))
    return list(nameless.exclude(Exists(ticks.filter(opted_in_at__gte=before)))[:ROWS])


def _erase(person: Person, before: datetime) -> bool:
    try:
        # not written down: a restored database finds them as old as they are here
        erasing.erase(person, writes_down=False, unless_since=before)
    except erasing.StillNeeded as needed:
        log.warning("person not erased", reasons=needed.reasons)
        return False
    return True


def _erase_cards(customer: Customer, now: datetime) -> None:
    """Empty last 4 and fingerprint of all their cards, once the newest is old enough."""
    led = Checkout.objects.filter(led_by__customer=customer).values("pk")
    paid = PaymentRequest.objects.filter(mate=customer).values("pk")
    cards = Payment.objects.filter(Q(subject__in=led) | Q(subject__in=paid))
    if not cards.filter(created_at__gte=now - DISPUTES_LAST).exists():
        cards.update(card_last4="", card_fingerprint="")
        Customer.objects.filter(pk=customer.pk).update(cards_erased_at=now)
