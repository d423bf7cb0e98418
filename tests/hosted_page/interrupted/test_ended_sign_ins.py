"""A sign-in ends while a page is open.

When the next form is sent, the page says that the sign-in has ended. No card is charged. The person can then
sign in again and continue.
"""

import time
from collections.abc import Callable

import pytest
from django.test import Client

from checkout.models import Checkout, PaymentRequest
from hosted_page.models import SmsMessage
from tests.hosted_page.browsers import words
from tests.hosted_page.interrupted.visits import (
    LINKS,
    PLACES,
    STEPS,
    Visit,
    bring,
    heading,
    payments,
    send_code,
    send_phone,
)
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("sign_in.said")]
IDLE, HOUR, OUT, NEW = "15 minutes", "an hour", "signed out in another tab", "no cookies"
NOT_SAVED = "This was not saved, and you were not charged. Your order has not changed."
NOT_CHARGED = "You have not been charged."
SAVED = "You have not been charged, and your split is saved."
CODE_ENDED = "That code no longer works"
# The text on the next page if the form of a step is sent after the sign-in has ended. The outer key is the
# step. The inner key says how the sign-in has ended.
SAID = {
    "code": {NEW: CODE_ENDED},
    "split": {IDLE: SAVED, HOUR: NOT_SAVED, OUT: NOT_SAVED, NEW: NOT_SAVED},
    "card": {IDLE: "You have not been charged", HOUR: NOT_CHARGED, OUT: NOT_CHARGED, NEW: NOT_CHARGED},
    "paid": dict.fromkeys((IDLE, HOUR, OUT, NEW), NOT_SAVED),
    "refunded": dict.fromkeys((IDLE, HOUR, OUT, NEW), "Sign in to see your receipt"),
}
# At the group link, a browser without cookies or a sign-in sees the group page, which offers to sign in.
GROUP_PAGE = {("group", step, how) for step in ("paid", "refunded") for how in (HOUR, OUT, NEW)}
GROUP_PAGE |= {("group", step, NEW) for step in SAID}
CASES = [(link, step, how) for link, step in PLACES for how in SAID.get(step, {})]
End = Callable[[Visit, str], None]


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> End:
    """Return a function that ends the sign-in of a browser."""
    now = time.time

    def ending(page: Visit, how: str) -> None:
        if how in (IDLE, HOUR):
            later = 905 if how == IDLE else 3700
            monkeypatch.setattr("django.core.signing.time.time", lambda: now() + later)
        elif how == OUT:
            page.second_tab().post("/leave")
        else:
            page.client.cookies.clear()

    return ending


@pytest.mark.parametrize(("link", "step", "how"), CASES)
def test_a_form_says_that_the_sign_in_has_ended(
    unpaid: Checkout, end: End, link: str, step: str, how: str
) -> None:
    page = bring(link, step, unpaid)
    before = payments(unpaid)
    end(page, how)
    answer = STEPS[step].send(page)
    page_words = plain(words(answer))
    assert heading(answer) and payments(unpaid) == before
    if (link, step, how) in GROUP_PAGE:
        assert "Sign in to see your receipt" in page_words or "just taken" in page_words
        return
    assert SAID[step][how] in page_words
    assert step in ("code", "refunded") or "You are signed out" in page_words


@pytest.mark.parametrize(("link", "step"), PLACES)
@pytest.mark.parametrize("how", [IDLE, HOUR, OUT])
def test_the_person_signs_in_again_and_goes_on(
    unpaid: Checkout, end: End, link: str, step: str, how: str
) -> None:
    page = bring(link, step, unpaid)
    SmsMessage.objects.all().delete()  # otherwise the number must wait for its next code
    end(page, how)
    if step in ("paid", "refunded"):
        page.query += f"{'&' if page.query else '?'}sign_in=1"
    asked = heading(send_phone(page))
    if step in ("question", "held"):
        assert asked != "Your mobile number", "the page shows the state of the payment"
        return
    assert asked == "Enter the 6-digit code"
    answer = send_code(page)
    assert heading(answer) not in ("Enter the 6-digit code", "You are signed out")
    assert "signed out" not in plain(words(answer))


def test_a_number_that_a_share_was_not_sent_to_can_be_replaced(unpaid: Checkout) -> None:
    """The page says that the share was sent to another number. The mate then signs in with that number."""
    page = bring("group", "phone", unpaid)
    PaymentRequest.objects.filter(checkout=unpaid, position=2).update(
        phone="+447700900456", claim_digest="", claimed_until=None
    )
    page.number = "07700 900777"
    send_phone(page)
    assert "sent to another number" in plain(words(send_code(page)))
    page.number = "07700 900456"
    assert heading(send_phone(page)) == "Enter the 6-digit code"
    assert heading(send_code(page)) == "Pay £20.00"


@pytest.mark.rule("secret.csp")
@pytest.mark.parametrize("link", LINKS)
def test_a_form_of_a_browser_without_cookies_leads_back_to_its_page(unpaid: Checkout, link: str) -> None:
    page = bring(link, "card", unpaid)
    page.client = Client(enforce_csrf_checks=True)
    for address, page_url in ((page.address("/phone"), page.address()), (page.bank, page.bank)):
        answer = page.client.post(address, {"phone": page.number})
        assert heading(answer) == "This page is out of date" and NOT_SAVED in plain(words(answer))
        assert f'href="{page_url.removeprefix("http://127.0.0.1:8000")}"' in words(answer)
