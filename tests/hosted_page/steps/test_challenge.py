"""The bank's challenge, with which a payer confirms a payment (3-D Secure).

The tests cover the redirect to the challenge, the return from it, and a challenge that the payer abandons.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from checkout import tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from payments.models import Operation, Payment
from payments.providers.sandbox.models import Charge
from tests.conftest import Api
from tests.hosted_page.browsers import ASKS, ChallengedLead, Payer, words
from tests.refusals import nothing_moves, refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def lea(unpaid: Checkout) -> ChallengedLead:
    return ChallengedLead(unpaid)


def charges() -> list[str]:
    # This task releases the holds that are planned to be released.
    tasks.finish_operations()
    return list(Charge.objects.order_by("pk").values_list("state", flat=True))


def status(payer: Payer) -> str:
    payer.checkout.refresh_from_db()
    return payer.checkout.status


class TestTheAnswer:
    @pytest.mark.rule("pay.challenge")
    def test_that_confirms_holds_the_money(self, lea: ChallengedLead) -> None:
        assert lea.answer("confirm")["Location"].endswith(f"/pay/confirmed?id={lea.checkout.pk}")
        assert lea.return_from_bank()["Location"] == f"/pay?id={lea.checkout.pk}"
        assert "your Visa ending 3155" in words(lea.get())
        assert (status(lea), charges(), ledger_proof.find_breaches()) == ("authorized", ["held"], [])

    @pytest.mark.rule("pay.challenge")
    def test_that_refuses_leads_to_the_card_step_with_a_reason(self, lea: ChallengedLead) -> None:
        lea.answer("refuse")
        lea.return_from_bank()
        assert lea.get()["Location"] == f"/pay/card?id={lea.checkout.pk}"
        page = lea.card_page()
        assert "You did not confirm this payment with your bank." in page
        assert "No money was taken. Try again, or use another card." in page
        assert (status(lea), charges()) == ("created", ["declined"])

    @pytest.mark.rule("pay.challenge")
    def test_that_refuses_is_reported_to_the_lead_of_a_split_order(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        lea.sign_in()
        lea.post("/split", split="own", name="Finn", amount="20", your_name="Lea", when="first")
        bank_form = lea.get("/card")["Location"]
        back = lea.client.post(bank_form, {"number": ASKS, "expiry": "08 / 49", "code": "123"})
        question = lea.client.get(back["Location"])["Location"]
        answered = lea.client.post(question, {"answer": "refuse"})
        page = words(lea.client.get(answered["Location"], follow=True))
        assert "You did not confirm this payment with your bank." in page

    @pytest.mark.parametrize(("first", "second"), [("confirm", "refuse"), ("refuse", "confirm")])
    def test_given_twice_counts_the_first_time(self, lea: ChallengedLead, first: str, second: str) -> None:
        assert lea.answer(first)["Location"] == lea.answer(second)["Location"]
        lea.return_from_bank()
        lea.return_from_bank()
        assert charges() == ["held" if first == "confirm" else "declined"]
        assert Operation.objects.count() == Payment.objects.count() == 1

    def test_after_another_card_was_chosen_leads_back_to_the_order(self, lea: ChallengedLead) -> None:
        lea.post("/another-card")
        assert charges() == ["voided"]
        for answered in (lea.client.get(lea.question), lea.answer("confirm")):
            assert answered["Location"].endswith(f"/pay/confirmed?id={lea.checkout.pk}")
        lea.return_from_bank()
        assert (status(lea), charges()) == ("created", ["voided"])

    def test_that_arrives_before_the_release_does_not_keep_the_hold(self, lea: ChallengedLead) -> None:
        lea.post("/another-card")
        lea.answer("confirm")
        assert Charge.objects.get().state == "held"
        lea.return_from_bank()
        assert (status(lea), charges()) == ("created", ["voided"])

    @pytest.mark.rule("pay.challenge")
    def test_that_is_missing_ends_the_challenge_after_ten_minutes(self, lea: ChallengedLead) -> None:
        self.wait(timedelta(minutes=9))
        tasks.finish_operations()
        assert "Confirm with your bank" in words(lea.get())
        self.wait(timedelta(minutes=2))
        assert charges() == ["voided"]
        assert "You did not answer your bank in time." in lea.card_page()

    def wait(self, time: timedelta) -> None:
        Operation.objects.update(created_at=F("created_at") - time, next_attempt_at=F("created_at"))


class TestThePageDuringTheChallenge:
    def test_links_to_the_banks_question(self, lea: ChallengedLead) -> None:
        page = words(lea.get())
        assert "Confirm with your bank" in page and lea.question in page and "Use another card" in page

    def test_shows_a_stranger_neither_the_question_nor_the_other_card_button(
        self, lea: ChallengedLead
    ) -> None:
        page = words(Payer(lea.checkout).get())
        assert "Not confirmed yet" in page
        assert lea.question not in page and "Use another card" not in page

    def test_reloads_completely_when_its_poll_finds_the_card_step(self, lea: ChallengedLead) -> None:
        lea.post("/another-card")
        polled = lea.client.get(f"/pay?id={lea.checkout.pk}", headers={"hx-request": "true"})
        assert (polled.status_code, polled["HX-Refresh"], polled.content) == (200, "true", b"")

    def test_a_reload_of_the_card_pages_return_address_starts_nothing(self, unpaid: Checkout) -> None:
        lea = Payer(unpaid)
        request = lea.pay(ASKS).request
        reload = f"{request['PATH_INFO']}?{request['QUERY_STRING']}"
        question = Operation.objects.get().action_url
        with nothing_moves():
            assert lea.client.get(reload)["Location"] == f"/pay?id={unpaid.pk}"
        lea.client.post(question, {"answer": "refuse"})
        lea.get("/confirmed")
        with nothing_moves():
            assert lea.client.get(reload)["Location"] == f"/pay?id={unpaid.pk}"

    def test_a_second_submit_of_the_card_form_replaces_the_first_question(self, lea: ChallengedLead) -> None:
        card = {"number": ASKS, "expiry": "08 / 49", "code": "123"}
        again = lea.client.get(lea.client.post(lea.bank_form, card)["Location"])["Location"]
        assert again != lea.question
        lea.answer("confirm")
        lea.client.post(again, {"answer": "confirm"})
        lea.return_from_bank()
        assert (status(lea), charges()) == ("authorized", ["voided", "held"])


class TestAnotherCard:
    @pytest.mark.rule("pay.another_card")
    def test_gives_up_the_first_card(self, lea: ChallengedLead) -> None:
        assert lea.post("/another-card")["Location"] == f"/pay?id={lea.checkout.pk}"
        ended = Operation.objects.get(kind="authorize")
        assert (ended.state, ended.reason, charges()) == ("failed", "another_card", ["voided"])
        assert 'role="alert"' not in lea.card_page()

    def test_can_be_chosen_only_by_the_lead(self, lea: ChallengedLead) -> None:
        with nothing_moves():
            assert Payer(lea.checkout).post("/another-card").status_code == 303
        assert "Confirm with your bank" in words(lea.get())

    def test_needs_a_csrf_token_and_a_post(self, lea: ChallengedLead) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = lea.client.cookies
        with nothing_moves():
            assert strict.post(f"/pay/another-card?id={lea.checkout.pk}").status_code == 403
            assert lea.get("/another-card").status_code == 405

    def test_is_refused_once_the_money_is_held(self, lea: ChallengedLead) -> None:
        lea.answer("confirm")
        lea.return_from_bank()
        with nothing_moves():
            lea.post("/another-card")
        assert status(lea) == "authorized"

    def test_is_refused_while_the_bank_is_being_asked(self, lea: ChallengedLead) -> None:
        Operation.objects.update(state="unknown")
        with nothing_moves():
            lea.post("/another-card")
        assert "Checking with your bank" in words(lea.get())

    def test_can_be_used_after_a_minute_without_a_response(self, lea: ChallengedLead) -> None:
        Operation.objects.update(state="unknown", created_at=F("created_at") - timedelta(minutes=1))
        assert "Your bank has not answered" in words(lea.get())
        lea.post("/another-card")
        assert Payment.objects.get().abandoned_at is not None
        assert "Pay by card" in lea.card_page()


class TestTheHelper:
    def pay(self, api: Api, checkout: Checkout, **more: Any) -> Any:
        path = f"/api/sandbox/v1/checkouts/{checkout.pk}/pay"
        body = {"card": ASKS, **more}
        return api.client.post(path, body, content_type="application/json", headers=api.headers({}))

    @pytest.mark.parametrize("more", [{}, {"challenge": "pass"}])
    def test_confirms(self, api: Api, unpaid: Checkout, more: dict[str, str]) -> None:
        answer = self.pay(api, unpaid, **more)
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "authorized")
        assert charges() == ["held"]

    def test_fails_on_request(self, api: Api, unpaid: Checkout) -> None:
        error = refused(self.pay(api, unpaid, challenge="fail"), 402, "card_declined")
        assert error["details"] == [{"reason": "challenge_failed"}]
        unpaid.refresh_from_db()
        assert (unpaid.status, charges()) == ("created", ["declined"])

    @pytest.mark.parametrize("value", ["", "maybe", "PASS", None, True, 1, ["pass"]])
    def test_refuses_any_other_challenge_value(self, api: Api, unpaid: Checkout, value: Any) -> None:
        with nothing_moves():
            refused(self.pay(api, unpaid, challenge=value), 422, "validation_failed", "challenge")
