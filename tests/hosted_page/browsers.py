"""Browsers for tests: of a lead, of a mate, and of a lead whose bank has asked for a confirmation."""

import re
from typing import Any

from django.test import Client

from checkout.models import Checkout, PaymentRequest
from payments.providers.sandbox.models import CardSession
from tests import mates

PHONE = "07700 900123"
FINN = "07700 900456"
ASKS = "4000002500003155"
TIME = r'<time datetime="[^"]+" data-zone="-?\d+">\d\d:\d\d<span>\xa0[^<]+</span></time>'


class Payer:
    """A payer's browser on the page of one checkout."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout, self.client = checkout, Client()

    def get(self, path: str = "", **query: str) -> Any:
        return self.client.get(f"/pay{path}", {"id": str(self.checkout.pk), **query})

    def post(self, path: str, **fields: str | list[str]) -> Any:
        return self.client.post(f"/pay{path}?id={self.checkout.pk}", fields)

    def code(self) -> str:
        return shown_code(self.get())

    def sign_in(self, phone: str = PHONE) -> None:
        self.post("/phone", phone=phone)
        self.post("/code", code=self.code())

    def pay(self, number: str = "4242424242424242", **split: Any) -> Any:
        """Sign in, choose a split or the whole order, enter a card on the bank's page, and return."""
        self.sign_in()
        self.client.post(f"/pay/split?id={self.checkout.pk}", split or {"split": "all"})
        bank = self.get("/card")["Location"]
        card = {"number": number, "expiry": "08 / 49", "code": "123"}
        back = self.client.post(bank, card)
        return self.client.get(back["Location"])


def waiting_lead(checkout: Checkout, *names: str) -> Payer:
    """Return the browser of Lea, who asks two mates for £20.00 and £30.00 and waits until they have pledged."""
    made = Payer(checkout)
    made.sign_in()
    split = {"split": "own", "name": names, "amount": ["20", "30"], "your_name": "Lea", "when": "first"}
    made.client.post(f"/pay/split?id={checkout.pk}", split)
    return made


def words(answer: Any) -> str:
    text: str = answer.content.decode()
    return text


def shown_code(answer: Any) -> str:
    """Return the code that the page shows, "" if it shows no code."""
    return "".join(re.findall(r"<code>(\d{6})</code>", words(answer)))


class Mate:
    """The browser of a mate who has opened a pay link."""

    def __init__(self, share: PaymentRequest) -> None:
        self.share, self.client = share, Client()
        self.path = f"/pay/share/{share.token}"

    def get(self, step: str = "") -> Any:
        return self.client.get(self.path + step)

    def post(self, step: str, **fields: str) -> Any:
        return self.client.post(self.path + step, fields)

    def sign_in(self, phone: str = FINN) -> None:
        self.post("/phone", phone=phone)
        self.post("/code", code=shown_code(self.get()))

    def pay(self, number: str = mates.FINNS) -> Any:
        """Sign in, enter a card on the bank's page, and return to the page."""
        self.sign_in()
        return self.give_card(number)

    def give_card(self, number: str = mates.FINNS) -> Any:
        card = {"number": number, "expiry": "08 / 49", "code": "123"}
        back = self.client.post(self.get("/card")["Location"], card)
        return self.client.get(back["Location"])

    def status(self) -> str:
        self.share.refresh_from_db()
        return self.share.status


class ChallengedLead(Payer):
    """The browser of a lead whose bank asks the lead to confirm the payment."""

    def __init__(self, checkout: Checkout) -> None:
        super().__init__(checkout)
        paid = self.pay(ASKS)
        assert paid.status_code == 303
        self.question: str = paid["Location"]
        # The address of the bank's card page. Another tab of the browser still has this page open.
        self.bank_form = f"/bank/card/{CardSession.objects.get().pk}"

    def answer(self, value: str) -> Any:
        return self.client.post(self.question, {"answer": value})

    def return_from_bank(self) -> Any:
        return self.get("/confirmed")

    def card_page(self) -> str:
        return words(self.client.get(self.get("/card")["Location"]))
