"""Lea, whose data it is, and the operators' commands about it."""

from io import StringIO

from django.core.management import call_command

from checkout.models import Checkout, Customer
from hosted_page.opt_in import consent
from hosted_page.payment_target import PaymentTarget

PHONE, EMAIL = "+447700900123", "lea@example.com"


def tick(order: Checkout, person: Customer | None, email: str = EMAIL) -> None:
    wording = consent.wording(order.merchant)
    consent.tick(PaymentTarget(order), person=person, email=email, placement="success_page", text=wording)


def run(command: str, *arguments: str) -> str:
    said = StringIO()
    call_command(command, *arguments, stdout=said)
    return said.getvalue()
