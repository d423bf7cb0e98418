"""Fixtures: the customer Lea and her order."""

import pytest

from checkout import captures
from checkout.models import Checkout, Customer
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE, CustomerFactory
from tests.hosted_page.privacy.persons import PHONE, give_card, tick


@pytest.fixture
def lea() -> Customer:
    return CustomerFactory.create(phone=PHONE, name="Lea")


@pytest.fixture
def order(acme: Merchant, lea: Customer) -> Checkout:
    """Return Lea's captured order. She has opted in and entered her e-mail address."""
    acme.opt_in_enabled = True
    acme.save()
    made = factories.checkout(acme)
    give_card(made, lea)
    captures.capture(acme, made.pk, cause=CAUSE)
    tick(Checkout.objects.get(pk=made.pk), lea)
    return Checkout.objects.select_related("merchant", "payment", "lead").get(pk=made.pk)
