"""Rare messages to payers. Each is shown in the right place and in each language."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.conf import settings
from django.db.models import F
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout import cancellations, captures, expiry
from checkout.models import Checkout, GroupLink
from config.lib.bulkhead import Bulkhead, Busy
from config.lib.quota import Limit
from hosted_page import payer
from hosted_page.group import share_claim_limits
from hosted_page.models import SmsMessage
from hosted_page.opt_in import link
from hosted_page.sms import limits, senders
from payments import operator_stops, safe_answers
from payments.models import Merchant, Operation, Payment
from payments.provider import CardPage
from tests import factories, mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import ASKS, PHONE, Payer, words
from tests.hosted_page.rare_messages.captured_orders import captured, speaking
from tests.hosted_page.sms.test_outbox import Network, send_all
from tests.outside import dispute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("page.language")]
DECLINED = "4000000000000002"
EXPIRED = "4000000000000069"
PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w*\}")


class TestTheNumber:
    def test_from_another_country(self, lea: Payer, shows: Callable[..., bool]) -> None:
        Merchant.objects.update(country="IE")
        assert shows(
            lea.get(), "Number from {country}. For another country, start with + and the country code."
        )

    def test_that_was_sent_by_the_shop_and_has_its_code(
        self, acme: Merchant, language: str, shows: Callable[..., bool], settings: Settings
    ) -> None:
        settings.SANDBOX = False
        order = factories.checkout(acme, customer={"phone": "+447700900123"})
        speaking(Payer(order), language).post("/prefilled")
        page = speaking(Payer(order), language).post("/prefilled")
        assert shows(page, "We just texted a code to this number.")
        assert shows(
            page, "Enter the code in the browser or app where it was requested. It works only there."
        )
        assert shows(page, "You can ask for a new code in") and "notice tone-" not in words(page)

    def test_of_a_range_over_its_budget_gets_no_receipt(
        self, lea: Payer, shows: Callable[..., bool], settings: Settings
    ) -> None:
        lea.pay()
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        SmsMessage.objects.all().delete()
        settings.SMS_RANGE_BUDGET = 0
        assert shows(lea.post("/receipt"), "We cannot text this number now. Try again {when}.")

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            (
                {"SMS_RANGE_BUDGET": 0},
                "We cannot text this number now. Use another number, or try again {when}.",
            ),
            ({"SMS_TOTAL_BUDGET": 0}, "We cannot send more texts today. Try again {when}."),
            (
                {"SMS_COUNTRIES": ["FR"]},
                "We don’t send texts to this country. Use a number from another country.",
            ),
        ],
    )
    def test_that_cannot_get_a_code(
        self,
        lea: Payer,
        shows: Callable[..., bool],
        settings: Settings,
        changed: dict[str, Any],
        sentence: str,
    ) -> None:
        for name, value in changed.items():
            setattr(settings, name, value)
        assert shows(lea.post("/phone", phone=PHONE), sentence)

    def test_of_a_network_that_has_requested_too_many_codes(
        self, lea: Payer, shows: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "PER_ADDRESS", Limit(0, timedelta(hours=1)))
        enough = "Too many texts were requested from your network. Try again {when}."
        assert shows(lea.post("/phone", phone=PHONE), enough)

    def test_whose_text_might_not_have_been_sent(
        self, lea: Payer, shows: Callable[..., bool], settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.SANDBOX, network = False, Network()
        monkeypatch.setattr(senders, "current_sender", lambda: network)
        lea.post("/phone", phone=PHONE)
        network.is_down = True
        send_all()
        assert shows(lea.get(), "The text to %(number)s might not have been sent. Ask for a new code.")

    def test_that_has_received_the_receipt(
        self, lea: Payer, shows: Callable[..., bool], settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea.pay()
        captures.capture(lea.checkout.merchant, lea.checkout.pk, cause=CAUSE)
        settings.SANDBOX, network = False, Network()
        monkeypatch.setattr(senders, "current_sender", lambda: network)
        SmsMessage.objects.all().delete()
        lea.post("/receipt")
        send_all()
        assert shows(lea.get(), 'Texted to <span class="together">%(number)s</span>.')


class TestTheSplit:
    def test_among_too_many_people(self, lea: Payer, shows: Callable[..., bool]) -> None:
        lea.sign_in()
        refused = lea.post("/split", split="own", your_name="Lea", name=["M"] * 21, amount=["1"] * 21)
        too_many = "At most {maximum} mates can share the cost. The others were left out. Check the amounts."
        assert shows(refused, too_many)

    def test_by_amounts_is_restored_after_the_sign_in(
        self, lea: Payer, shows: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea.sign_in()
        monkeypatch.setattr(payer, "LIFE", -1)
        lea.post("/split", split="own", your_name="Lea", name=["Finn"], amount=["20"])
        kept = "%(people)s: <strong>%(yours)s</strong> for you, <strong>%(mates)s</strong> for your mates."
        assert shows(lea.get(), kept)


class TestTheCard:
    def test_while_all_slots_are_taken(
        self, lea: Payer, shows: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea.sign_in()
        lea.post("/split", split="all")

        def no_slot(_self: Bulkhead) -> ExitStack:
            raise Busy

        monkeypatch.setattr(Bulkhead, "slot", no_slot)
        page = lea.get("/card")
        assert page.status_code == 503 and shows(page, "The bank is slow right now")
        assert shows(page, "You have not paid anything yet. Try again in a moment.") and shows(
            page, "Try again"
        )

    def test_after_the_banks_question_was_not_answered(self, lea: Payer, shows: Callable[..., bool]) -> None:
        lea.pay(DECLINED)
        Payment.objects.update(decline_reason="challenge_expired")
        card = lea.client.get(lea.get("/card")["Location"])
        assert shows(card, "You did not answer your bank in time.")

    def test_of_a_lead_with_one_mate(self, lea: Payer, shows: Callable[..., bool]) -> None:
        lea.sign_in()
        lea.post("/split", split="own", your_name="Lea", name=["Finn"], amount=["20"])
        card = lea.client.get(lea.get("/card")["Location"])
        assert shows(card, "Goes back when your mate pays")

    def test_that_has_expired(self, lea: Payer, shows: Callable[..., bool]) -> None:
        lea.pay(EXPIRED)
        assert shows(lea.client.get(lea.get("/card")["Location"]), "This card has expired.")

    @pytest.mark.parametrize(
        ("reason", "sentence"),
        [
            ("never_arrived", "Your bank did not answer."),
            ("held_for_less", "Your bank would only hold part of the amount."),
        ],
    )
    def test_that_the_bank_refused(
        self, lea: Payer, shows: Callable[..., bool], reason: str, sentence: str
    ) -> None:
        lea.pay(DECLINED)
        Payment.objects.update(decline_reason=reason)
        assert shows(lea.client.get(lea.get("/card")["Location"]), sentence)

    def test_at_a_provider_whose_fields_need_a_script(
        self, lea: Payer, shows: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lea.sign_in()
        lea.post("/split", split="all")
        facts = ("stripe_script", "publishable_key", "account", "amount", "currency", "return_url")
        form = CardPage("stripe/card.html", dict.fromkeys(facts, "x") | {"methods": ["card"]}, {})
        monkeypatch.setattr(safe_answers, "card_page", lambda _form: form)
        page = lea.get("/card")
        assert shows(page, "Paying by card needs JavaScript")
        assert shows(page, "Turn it on in your browser and reload this page. You have not paid.")
        broken = "The card form could not be loaded. Check your connection and reload this page."
        assert shows(page, broken)

    def test_of_another_person_whose_bank_does_not_answer(
        self, lea: Payer, language: str, shows: Callable[..., bool], in_doubt: Callable[..., Operation]
    ) -> None:
        in_doubt("authorize")
        stranger = speaking(Payer(lea.checkout), language)
        assert shows(stranger.get(), "Checking with the bank")
        assert shows(stranger.get(), "The bank was asked for <strong>{amount}</strong>.")
        Operation.objects.update(created_at=timezone.now() - timedelta(minutes=2))
        assert shows(stranger.get(), "The bank has not answered")

    def test_of_a_mate_whose_bank_asks_for_a_confirmation(
        self, lea: Payer, language: str, shows: Callable[..., bool]
    ) -> None:
        share = captured(lea, name=["Finn"], amount=["20"]).payment_requests.get()
        mates.pay(share, ASKS)
        page = Client(headers={"accept-language": language}).get(f"/pay/share/{share.token}")
        assert shows(page, "Someone is paying this")
        assert shows(page, "The payer’s bank is asking them to confirm the payment.")

    def test_that_might_be_held_a_moment_longer(
        self, lea: Payer, shows: Callable[..., bool], in_doubt: Callable[..., Operation]
    ) -> None:
        in_doubt("authorize", mode="done_then_reset")
        Operation.objects.update(created_at=F("created_at") - timedelta(seconds=70))
        factories.make_late(lea.checkout)
        expiry.expire_one_if_due(lea.checkout.pk)
        released = "<strong>You paid nothing.</strong> If your bank still holds any money, it is released."
        assert shows(lea.get(), released)


class TestTheBill:
    def test_of_a_link_that_has_expired(self, lea: Payer, shows: Callable[..., bool]) -> None:
        share = captured(lea, name=["Finn"], amount=["20"]).payment_requests.get()
        lea.checkout.payment_requests.update(expires_at=timezone.now() - timedelta(minutes=1))
        refused = lea.post("/ask-again", share=str(share.pk))
        assert refused.status_code == 422
        assert shows(refused, "This link has expired, so the share was not changed.")

    def test_of_a_share_that_is_being_paid(self, lea: Payer, shows: Callable[..., bool]) -> None:
        share = captured(lea, name=["Finn"], amount=["20"]).payment_requests.get()
        mates.pay(share)
        refused = lea.post("/ask-again", share=str(share.pk))
        assert shows(
            refused, "{name} is paying this share now, so it was not changed. Check again in a minute."
        )

    def test_after_an_action_that_is_no_longer_possible(self, lea: Payer, shows: Callable[..., bool]) -> None:
        share = captured(lea, name=["Finn"], amount=["20"]).payment_requests.get()
        Client().post(f"/pay/share/{share.token}/decline")
        dispute(Checkout.objects.get().payment)
        refused = lea.post("/ask-again", share=str(share.pk))
        assert shows(
            refused, "This change is not possible now, so the share was not changed. Check the share below."
        )

    def test_with_a_refusal_that_is_final(self, lea: Payer, shows: Callable[..., bool]) -> None:
        share = captured(lea, name=["Finn"], amount=["20"]).payment_requests.get()
        Client().post(f"/pay/share/{share.token}/decline")
        lea.checkout.payment_requests.update(expires_at=timezone.now())
        stays = '<bdi>%(name)s</bdi> has not been charged. You cover the <strong class="amount">%(amount)s</strong>.'
        assert shows(lea.get(), stays)

    def test_of_a_link_that_is_not_sent_by_text(
        self, lea: Payer, shows: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        share = captured(lea, name=["Finn"], amount=["20"]).payment_requests.get()
        asked = {"share": str(share.pk), "phone": "07700 900456"}
        with monkeypatch.context() as enough:
            enough.setattr(limits, "INVITATIONS", 0)
            more = "We cannot send more texts for this order. Send the link yourself."
            assert shows(lea.post("/text-share", **asked), more)
        operator_stops.suspend(lea.checkout.merchant, reason="Asked for")
        stopped = "This shop is not taking payments now. Try again later."
        assert shows(lea.post("/text-share", **asked), stopped)

    def test_with_several_items(self, acme: Merchant, language: str, shows: Callable[..., bool]) -> None:
        items = [factories.item(name=name, quantity=1, unit_price=4500) for name in ("Hall", "Choir")]
        lea = speaking(Payer(factories.checkout(acme, items=items)), language)
        captured(lea, name=["Finn"], amount=["20"])
        more = "{first} and {count} more"
        assert shows(lea.get(), more, more)


def test_a_shop_with_a_support_page(lea: Payer, shows: Callable[..., bool]) -> None:
    Merchant.objects.update(support_url="https://acme.example/help")
    cancellations.cancel(lea.checkout.merchant, lea.checkout.pk, note="", cause=CAUSE)
    assert shows(lea.get(), "Ask <bdi>%(shop)s</bdi> for help")


def test_a_request_that_cannot_be_read(lea: Payer, shows: Callable[..., bool]) -> None:
    fields = urlencode(
        {f"field{number}": "x" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1)}
    )
    form = "application/x-www-form-urlencoded"
    refused = lea.client.post(f"/pay/phone?id={lea.checkout.pk}", fields, content_type=form)
    assert refused.status_code == 400 and shows(refused, "This request cannot be read")


def test_a_consent_that_is_saved(lea: Payer, shows: Callable[..., bool]) -> None:
    Merchant.objects.update(opt_in_enabled=True)
    path = urlsplit(link.url(lea.checkout, "app")).path
    saved = lea.client.post(path, {"opt_in": "yes", "email": "lea@example.com", "version": "1"})
    assert shows(
        lea.client.get(saved["Location"]), "Saved. You can ask <bdi>%(shop)s</bdi> to stop at any time."
    )


class TestTheGroupsLink:
    def test_of_a_network_that_has_claimed_too_many_shares(
        self, lea: Payer, language: str, shows: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        captured(lea, name=["Finn", "Amy"], amount=["20", "20"])
        monkeypatch.setattr(share_claim_limits, "PER_ADDRESS", Limit(1, timedelta(hours=1)))
        guest, path = (
            Client(headers={"accept-language": language}),
            f"/pay/g/{GroupLink.objects.get().token}/take",
        )
        guest.post(path, {"share": "2"})
        refused = guest.post(path, {"share": "3"})
        assert refused.status_code == 429 and shows(refused, "No more shares for now")
        assert shows(refused, "Too many shares were taken from your network. Try again {when}.")

    def test_of_an_order_that_is_not_confirmed(
        self, lea: Payer, language: str, shows: Callable[..., bool]
    ) -> None:
        lea.pay(split="own", your_name="Lea", name=["Finn"], amount=["20"])
        page = Client(headers={"accept-language": language}).get(f"/pay/g/{GroupLink.objects.get().token}")
        waits = (
            "{shop} has not confirmed {name}’s order yet. This link opens when the order is confirmed. You"
            " have not been charged."
        )
        assert shows(page, waits)


def test_a_form_without_a_valid_token(lea: Payer, language: str, shows: Callable[..., bool]) -> None:
    browser = Client(enforce_csrf_checks=True, headers={"accept-language": language})
    refused = browser.post(f"/pay/phone?id={lea.checkout.pk}", {"phone": PHONE})
    assert refused.status_code == 403 and shows(refused, "This page is out of date")
