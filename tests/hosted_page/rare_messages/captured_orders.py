"""Helpers for the tests of rare messages to payers in each language."""

from typing import Any

from django.test import Client

from checkout import captures
from checkout.models import Checkout
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer


def speaking(browser: Payer, language: str) -> Payer:
    browser.client = Client(headers={"accept-language": language})
    return browser


def captured(lea: Payer, **split: Any) -> Checkout:
    lea.pay(split="own", your_name="Lea", **split)
    return captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
