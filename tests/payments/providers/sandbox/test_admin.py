"""The operators' pages about the sandbox bank's records use plain words."""

import pytest
from django.test import Client

from checkout.models import Checkout
from payments.providers.sandbox import client as bank_client
from payments.providers.sandbox.models import Call

pytestmark = pytest.mark.django_db
CALLS = "/admin/bank/call/"


def page_of(operator: Client, call: Call) -> str:
    answer = operator.get(f"{CALLS}{call.pk}/change/")
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_a_call_shows_words_and_explains_its_key(operator: Client, captured: Checkout) -> None:
    call = Call.objects.get(kind="capture")
    page = page_of(operator, call)
    assert ">Capture</div>" in page and ">Succeeded</div>" in page
    assert "The key that the service sent." in page and "Null for" not in page and "the line" not in page


def test_only_a_refund_says_whether_it_was_returned(operator: Client, captured: Checkout) -> None:
    assert ">Has returned</label>" not in page_of(operator, Call.objects.get(kind="capture"))
    bank_client.call_bank("act_in_dashboard", kind="refund", payment=captured.payment_id, amount=1000)
    assert ">Has returned</label>" in page_of(operator, Call.objects.get(kind="refund"))


def test_a_list_shows_reasons_in_words(operator: Client, captured: Checkout) -> None:
    Call.objects.filter(kind="capture").update(verdict="failed", reason="card_account_closed")
    page = operator.get(CALLS).content.decode()
    assert "Card account closed" in page and "card_account_closed" not in page and "Authorize" in page


def test_a_charge_names_our_payment(operator: Client, captured: Checkout) -> None:
    page = operator.get(f"/admin/bank/charge/{Call.objects.get(kind='capture').charge_id}/change/")
    assert "Our payment." in page.content.decode() and "caller" not in page.content.decode()
