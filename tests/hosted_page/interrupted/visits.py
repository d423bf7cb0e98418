"""The browser of a payer who visits an order, a pay link or the group link. It can go to any step of the payment."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from checkout import captures, refunds
from checkout.models import Checkout, GroupLink, PaymentRequest
from hosted_page.models import SmsMessage
from payments.models import Payment
from tests import mates
from tests.factories import CAUSE
from tests.hosted_page.browsers import FINN, PHONE, Payer, shown_code, words
from tests.outside import settle

SPLIT = {"split": "equal", "people": "3", "your_name": "Lea"}
POLL = {"HX-Request": "true"}
LINKS = ("order", "share", "group")


@dataclass
class Visit:
    """A browser at a link. `bank` is the address of the provider's page that is open in the browser."""

    checkout: Checkout
    path: str
    query: str = ""
    number: str = PHONE
    card: str = "4242424242424242"
    client: Client = field(default_factory=Client)
    code: str = ""
    bank: str = ""

    def address(self, step: str = "") -> str:
        return f"{self.path}{step}{self.query}"

    def get(self, step: str = "", **options: Any) -> Any:
        return self.client.get(self.address(step), **options)

    def post(self, step: str, **fields: Any) -> Any:
        return self.client.post(self.address(step), fields, follow=True)

    def second_tab(self) -> "Visit":
        """Return another tab of the same browser, which has the same page open."""
        return Visit(**vars(self))


def visit(link: str, checkout: Checkout) -> Visit:
    """Open a link, and return the browser.

    The link leads to an order, or to share 2 of a captured order that Lea has split and paid.
    """
    if link == "order":
        return Visit(checkout, "/pay", f"?id={checkout.pk}")
    Payer(checkout).pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
    order = captures.capture(checkout.merchant, checkout.pk, cause=CAUSE)
    SmsMessage.objects.all().delete()
    if link == "share":
        token = PaymentRequest.objects.get(checkout=order, position=2).token
        return Visit(order, f"/pay/share/{token}", number=FINN, card=mates.FINNS)
    group = f"/pay/g/{GroupLink.objects.get(checkout=order).token}"
    guest = Visit(order, f"{group}/2", number=FINN, card=mates.FINNS)
    guest.client.post(f"{group}/take", {"share": "2"})
    return guest


def send_phone(page: Visit) -> Any:
    answer = page.post("/phone", phone=page.number)
    page.code = shown_code(answer) or page.code
    return answer


def send_code(page: Visit) -> Any:
    return page.post("/code", code=page.code)


def send_split(page: Visit) -> Any:
    return page.post("/split", **SPLIT)


def open_card(page: Visit) -> None:
    """Go to the card page from the code step or, for an order, from the split step."""
    (send_split if page.query else send_code)(page)
    page.bank = page.get("/card")["Location"]


def send_card(page: Visit, number: str = "") -> Any:
    """Send the card form, and follow the provider's redirects back to the page."""
    card = {"number": number or page.card, "expiry": "08 / 49", "code": "123"}
    return page.client.post(page.bank, card, follow=True)


def open_question(page: Visit) -> None:
    page.bank = send_card(page, mates.CHALLENGED).redirect_chain[-1][0]


def answer_question(page: Visit) -> Any:
    return page.client.post(page.bank, {"answer": "confirm"}, follow=True)


def capture(page: Visit) -> None:
    """Let the shop capture the order. On the page of a share, reimburse this share to the lead instead."""
    if page.query:
        captures.capture(page.checkout.merchant, page.checkout.pk, cause=CAUSE)
    else:
        mates.settled(PaymentRequest.objects.get(checkout=page.checkout, position=2))


def refund(page: Visit) -> None:
    refunds.accept(page.checkout.merchant, page.checkout.pk, ref="r-1", cause=CAUSE)
    settle(page.checkout)


def send_receipt(page: Visit) -> Any:
    return page.post("/receipt")


def reload(page: Visit) -> Any:
    return page.client.get(page.address(), follow=True)


@dataclass(frozen=True)
class Step:
    """A step of the payment.

    `arrive` goes from the previous step to this one, and `send` sends the form on its page.
    """

    arrive: Callable[[Visit], object]
    send: Callable[[Visit], Any]


STEPS = {
    "phone": Step(lambda page: page.get(), send_phone),
    "code": Step(send_phone, send_code),
    "split": Step(send_code, send_split),
    "card": Step(open_card, send_card),
    "question": Step(open_question, answer_question),
    "held": Step(answer_question, reload),
    "paid": Step(capture, send_receipt),
    "refunded": Step(refund, reload),
}
# Only the lead, at the order, has a split step. A mate goes from the code directly to the card.
PLACES = [(link, step) for link in LINKS for step in STEPS if link == "order" or step != "split"]


def bring(link: str, step: str, checkout: Checkout) -> Visit:
    """Return a browser that has gone through all earlier steps, and is now at this step."""
    page = visit(link, checkout)
    for name, found in STEPS.items():
        if (link, name) in PLACES:
            found.arrive(page)
        if name == step:
            return page
    raise AssertionError(step)


def heading(answer: Any) -> str:
    """Return the heading of a complete page. Fail if the response is an error, or is not exactly one page."""
    page = words(answer)
    assert answer.status_code < 500, page
    assert page.count("<main") == 1 and page.count("<html") == 1, page[:300]
    (found,) = re.findall(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found).split())


def is_part_or_reload(answer: Any) -> bool:
    """Return whether a response to htmx is a part of a page, is empty, or makes the page reload."""
    page = words(answer)
    leads = {"HX-Refresh", "HX-Redirect"} & set(answer.headers)
    return answer.status_code in (200, 204) and (
        not page if leads else "<main" not in page and "<html" not in page
    )


def payments(checkout: Checkout) -> int:
    """Count the payments of the lead and the mates with a card that was not declined."""
    return Payment.objects.filter(checkout_uuid=checkout.pk, card_last4__gt="", decline_reason="").count()
