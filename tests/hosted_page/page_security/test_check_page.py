"""The payment pages that the daily check opens. They show no real order."""

from collections.abc import Callable

import pytest
from django.test import Client

from checkout.models import Checkout
from hosted_page import rendering
from hosted_page.page_security import check_page
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import card_page, sign_in_extension
from payments import provider, safe_answers
from payments.providers.sandbox.models import CardSession
from payments.providers.stripe.adapter import StripeProvider
from tests.hosted_page.browsers import Payer, words

pytestmark = [pytest.mark.django_db, pytest.mark.rule("card_page.daily_check")]


@pytest.fixture
def at_stripe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_answers, "card_page", StripeProvider().open_card_form)


@pytest.mark.parametrize("query", ["", "?step=", "?step=card", "?step=ImNhcmQi:1abcde:xyz"])
def test_check_pages_are_a_404_without_a_valid_signature(client: Client, query: str) -> None:
    assert client.get(f"/pay/check{query}").status_code == 404


def test_check_page_address_is_valid_for_a_minute(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    address = check_page.check_address(check_page.FIRST_STEP)
    assert client.get(address).status_code == 200 and client.post(address).status_code == 405
    monkeypatch.setattr(check_page, "SECONDS", -1)
    assert client.get(address).status_code == 404


def test_first_check_page_is_the_phone_step(client: Client) -> None:
    page = client.get(check_page.check_address(check_page.FIRST_STEP))
    assert "Your mobile number" in words(page)


def test_card_check_page_does_not_exist_for_a_provider_elsewhere(client: Client) -> None:
    assert client.get(check_page.check_address(check_page.CARD)).status_code == 404


def test_card_check_page_under_our_host_equals_that_of_an_order(
    client: Client, lea: Payer, at_stripe: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = client.get(check_page.check_address(check_page.CARD))
    lea.sign_in()
    lea.post("/split", split="all")
    real = lea.get("/card")
    assert "Pay £10.00" in words(page) and "card-element" in words(page)
    ignored = {"Content-Length", "Content-Security-Policy", "X-Request-Id", "Vary"}
    assert {name: value for name, value in page.items() if name not in ignored} == {
        name: value for name, value in real.items() if name not in ignored
    }
    policies = [set(answer["Content-Security-Policy"].split("; ")) for answer in (page, real)]
    assert {part.partition(" ")[0] for part in policies[0] ^ policies[1]} == {"form-action"}


def test_sample_data_has_the_fields_of_a_card_page(unpaid: Checkout) -> None:
    real = card_page.page_context(
        PaymentTarget(Checkout.objects.select_related("merchant").get(pk=unpaid.pk))
    )
    sample = check_page.page_context()
    assert sample.keys() == real.keys() and sample["order"].keys() == real["order"].keys()


def test_sample_data_has_the_fields_of_a_signed_in_payers_page(unpaid: Checkout) -> None:
    payer = Payer(unpaid)
    payer.sign_in()
    target = PaymentTarget(Checkout.objects.select_related("merchant", "lead").get(pk=unpaid.pk))
    request = payer.get().wsgi_request
    sample, leave = check_page.page_context(), rendering.sign_out_button(request, target)
    assert sample["stay"].keys() == sign_in_extension.extension_notice(request, target).keys()
    assert leave is not None and sample["leave"].keys() == leave.keys()


def test_card_check_page_of_the_sandbox_bank_is_its_own_page(client: Client) -> None:
    address = check_page.card_page()
    assert isinstance(address, str) and provider.current_provider().page_origins == ()
    assert CardSession.objects.count() == 1 and "Card form by Sandbox Bank" in words(client.get(address))


def test_check_pages_store_nothing(
    client: Client, at_stripe: None, django_assert_num_queries: Callable[..., object]
) -> None:
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        client.get(check_page.check_address(check_page.FIRST_STEP))
        client.get(check_page.check_address(check_page.CARD))
