"""The data that a merchant may give to a customer who asks for it."""

import json

import pytest
from django.test import Client

from checkout.models import Checkout, Customer
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget
from hosted_page.privacy import data_subjects as persons
from hosted_page.privacy import erasure
from payments.models import Merchant
from portal.models import AuditEntry
from tests import factories
from tests.portal import people

pytestmark = [pytest.mark.django_db, pytest.mark.rule("privacy.export")]


@pytest.fixture
def owner(client: Client, acme: Merchant) -> Client:
    user = people.join(acme)
    client.force_login(user)
    people.prove(client, user)
    return client


def download(owner: Client, order: Checkout) -> dict[str, object]:
    answer = owner.post(f"/portal/checkouts/{order.pk}/customer")
    assert answer["Content-Disposition"].startswith("attachment") and answer["Cache-Control"] == "no-store"
    found: dict[str, object] = json.loads(answer.content)
    return found


def test_an_export_has_only_data_that_the_merchant_knows(
    owner: Client, captured: Checkout, rival: Merchant
) -> None:
    Customer.objects.update(name="Lea")
    Checkout.objects.filter(pk=factories.checkout(rival).pk).update(lead=captured.lead)
    found = download(owner, captured)
    assert [row["checkout_uuid"] for row in found["orders"]] == [str(captured.pk)]  # type: ignore[attr-defined]
    assert found["name"] is None and str(found["phone"]).startswith("•••• ")
    entry = AuditEntry.objects.get(action="customer_exported")
    assert entry.facts == {"checkout": str(captured.pk)}


def test_an_export_has_name_and_number_of_an_opted_in_customer(owner: Client, captured: Checkout) -> None:
    Customer.objects.update(name="Lea")
    Merchant.objects.update(opt_in_enabled=True)
    order = Checkout.objects.select_related("merchant", "lead").get(pk=captured.pk)
    text = consent.wording(order.merchant)
    target = PaymentTarget(order)
    consent.record_opt_in(target, person=order.lead, email="lea@example.com", placement="app", text=text)
    found = download(owner, captured)
    assert order.lead and (found["name"], found["phone"]) == ("Lea", order.lead.phone)


def test_an_export_of_an_erased_customer_says_so(owner: Client, captured: Checkout) -> None:
    assert captured.lead
    erasure.erase(persons.of_customer(captured.lead.pk))
    answer = owner.post(f"/portal/checkouts/{captured.pk}/customer", follow=True)
    assert "We have no data of this customer." in answer.content.decode()
    assert not AuditEntry.objects.filter(action="customer_exported").exists()
