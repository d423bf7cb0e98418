"""A form is sent twice, after Back or from a second tab. No one pays twice, and the page shows the current step."""

import pytest

from checkout.models import Checkout
from hosted_page.models import SignInCode, SmsMessage
from tests.hosted_page.browsers import words
from tests.hosted_page.interrupted.visits import (
    LINKS,
    PLACES,
    STEPS,
    Visit,
    bring,
    heading,
    payments,
    reload,
    send_card,
    send_code,
    send_phone,
)
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]
IN_TABS = {"phone": "Enter the 6-digit code", "code": "Who’s in on this?", "split": "Pay by card"}


def earlier_steps(link: str, step: str) -> list[str]:
    names = [name for name in STEPS if (link, name) in PLACES]
    return names[: names.index(step)]


@pytest.mark.rule("pay.honest_page", "pay.one_hold")
@pytest.mark.parametrize(("link", "step"), [place for place in PLACES if place[1] != "phone"])
def test_each_earlier_form_leads_to_the_current_step(unpaid: Checkout, link: str, step: str) -> None:
    page = bring(link, step, unpaid)
    SmsMessage.objects.all().delete()
    before, codes = payments(unpaid), SignInCode.objects.count()
    for name in earlier_steps(link, step):
        if (name, step) in (("phone", "code"), ("card", "question")):
            continue  # these forms can be sent twice: the service sends a new code, or the bank asks again
        expected = heading(reload(page))
        assert heading(STEPS[name].send(page)) == expected, name
    assert (payments(unpaid), SignInCode.objects.count()) == (before, codes)


@pytest.mark.rule("pay.one_hold")
@pytest.mark.parametrize("link", LINKS)
def test_two_tabs_with_the_card_pay_once(unpaid: Checkout, link: str) -> None:
    first = bring(link, "card", unpaid)
    second, before = first.second_tab(), payments(unpaid)
    second.bank = second.get("/card")["Location"]
    paid = heading(send_card(first))
    assert heading(send_card(second)) == paid and payments(unpaid) == before + 1


@pytest.mark.parametrize("link", LINKS)
def test_two_tabs_with_the_code_both_continue(unpaid: Checkout, link: str) -> None:
    first = bring(link, "code", unpaid)
    second: Visit = first.second_tab()
    expected = heading(send_code(first))
    for code in (first.code, "000000"):
        second.code = code
        assert heading(send_code(second)) == expected


@pytest.mark.rule("sign_in.code")
@pytest.mark.parametrize("link", LINKS)
def test_a_second_tab_can_ask_for_another_number(unpaid: Checkout, link: str) -> None:
    page = bring(link, "card", unpaid)
    page.number = "07700 900888"
    answer = send_phone(page)
    assert heading(answer) == "Enter the 6-digit code" and "0888" in plain(words(answer))
