"""Helpers for the tests of personal data: Lea's data, and the operators' commands for it."""

from io import StringIO

from django.core.management import call_command

from checkout import authorizations
from checkout.models import Checkout, Customer
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget
from payments.cause import Cause
from payments.provider import CardUse
from payments.providers.sandbox import bank

PHONE, EMAIL = "+447700900123", "lea@example.com"


def tick(order: Checkout, person: Customer | None, email: str = EMAIL) -> None:
    wording = consent.wording(order.merchant)
    consent.record_opt_in(
        PaymentTarget(order), person=person, email=email, placement="success_page", text=wording
    )


def give_card(order: Checkout, person: Customer, card: str = "4242424242424242") -> None:
    """Make a person the lead of the order, and pay with a card as on the page."""
    Checkout.objects.filter(pk=order.pk).update(lead=person)
    token = bank.tokenise(subject=order.pk, number=card)
    cause = Cause(f"customer:{person.pk}", "")
    authorizations.authorize(order.pk, card=CardUse(token), lead=person, cause=cause)


def run(command: str, *arguments: str) -> str:
    said = StringIO()
    call_command(command, *arguments, stdout=said)
    return said.getvalue()
