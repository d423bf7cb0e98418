"""Texts contain only GSM-7 characters, in every language of the page.

A text of only GSM-7 characters can be 160 characters long. With any other character, it can be only 70.
"""

import re

import pytest
from django.test import Client

from checkout import captures
from checkout.models import Checkout
from hosted_page.models import SmsMessage
from hosted_page.sms import outbox
from tests.factories import CAUSE
from tests.hosted_page.browsers import Payer
from tests.house import messages

pytestmark = pytest.mark.rule("sms.letters")
GSM_7 = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
    "abcdefghijklmnopqrstuvwxyzäöñüà^{}\\[~]|€"
)
TEXTS = (
    "{code} is your code for {shop}. Do not share it.",
    "{name} is asking you for {amount}, your share at {shop}: {link}",
    "No more texts: {link}",
    "{name} said no to {amount} at {shop}. Ask again or cover it: {link}",
    "The share of {name} at {shop}, {amount}, could not be taken. {name} can try again: {link}",
    "Everyone is in at {shop}, {amount} in total. You can pay now: {link}",
    "All your mates have paid their shares at {shop}, {amount} in total: {link}",
    "{amount} at {shop} is not paid yet, and the links expire in a day. Remind your mates: {link}",
    "Your mates have paid {amount} at {shop}. No more shares are due: {link}",
    "Your receipt from {shop}, {amount}: {link}",
    *("Your mate", "A mate", "the shop"),
)
in_each = pytest.mark.parametrize("language", ["en-gb", "de", "es", "fr", "it", "nl"])


def strangers(text: str) -> set[str]:
    return set(text) - GSM_7


@in_each
def test_our_texts_use_only_letters_of_the_sms_alphabet(language: str) -> None:
    catalogue = {} if language == "en-gb" else {row.id: str(row.string) for row in messages.read(language)}
    for words in TEXTS:
        said = words if language == "en-gb" else catalogue[words]
        text = re.sub(r"\{\w+\}", "", said).translate(outbox.PLAIN)
        assert strangers(text) == set() and len(text) <= 90, said


@in_each
@pytest.mark.django_db
def test_sent_texts_use_only_letters_of_the_sms_alphabet(unpaid: Checkout, language: str) -> None:
    lea = Payer(unpaid)
    lea.client = Client(headers={"accept-language": language})
    lea.pay(split="own", name=["Finn"], amount=["20"], your_name="Zoë O’Hara")
    captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)
    finns = unpaid.payment_requests.get()
    lea.post("/text-share", share=str(finns.pk), phone="07700 900456")
    code, invitation = (str(row.body) for row in SmsMessage.objects.order_by("created_at"))
    assert strangers(code) == set() and len(code) <= 160, code
    assert strangers(invitation) == {"ë"}, "a name is as it was typed"
    assert "20" in invitation and len(invitation.replace("ë", "e")) <= 2 * 153
