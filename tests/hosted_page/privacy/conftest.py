"""Lea and her order."""

from collections.abc import Callable

import pytest

from checkout import captures
from checkout.models import Checkout, Customer
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE, CustomerFactory
from tests.hosted_page.privacy.persons import PHONE, tick

Pay = Callable[..., Checkout]


@pytest.fixture
def lea() -> Customer:
    return CustomerFactory.create(phone=PHONE, name="Lea")


@pytest.fixture
def order(acme: Merchant, lea: Customer, pay: Pay) -> Checkout:
    """Lea's order, captured, with a tick of her address."""
    acme.opt_in_enabled = True
    acme.save()
    made = factories.checkout(acme)
    Checkout.objects.filter(pk=made.pk).update(lead=lea)
    paid = pay(made)
    captures.capture(acme, paid.pk, cause=CAUSE)
    tick(Checkout.objects.get(pk=made.pk), lea)
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=made.pk)
