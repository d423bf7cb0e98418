"""The limits on cards for pledges, and what a mate sees who has used too many cards."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from checkout import cancellations
from checkout.models import Checkout
from config.lib import clock
from config.lib.quota import Limit
from hosted_page.models import CardTry, SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.steps import declines
from payments.models import Merchant
from tests import factories, mates, plans
from tests.factories import CAUSE
from tests.hosted_page.browsers import Mate, Payer, waiting_lead, words
from tests.hosted_page.group.test_collecting import share
from tests.hosted_page.status.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted"), pytest.mark.rule("pledge.cards")]

OTHER_TRIES = """
INSERT INTO hosted_page_cardtry
    (id, subject, card_token, phone_digest, address_digest, site_digest, is_counted, created_at)
SELECT gen_random_uuid(), gen_random_uuid(), 'tok', md5(n::text), md5(n::text), '', n % 2 = 0,
    now() - n * interval '8 seconds'
FROM generate_series(1, 20000) n
"""


@pytest.fixture
def lead(unpaid: Checkout) -> Payer:
    """Return the browser of Lea, who gets Finn and one more mate in before she pays."""
    return waiting_lead(unpaid, "Finn", "")


@pytest.fixture
def finn(lead: Payer) -> Mate:
    """Return the browser of Finn, who has pledged."""
    made = Mate(share(lead.checkout, 2))
    made.pay()
    assert made.status() == "pledged"
    return made


def test_can_try_three_cards_and_all_declines_read_alike(lead: Payer) -> None:
    made = Mate(share(lead.checkout, 2))
    made.sign_in()
    for number in ("4000000000009995", "4000000000000069", "4000000000000002"):
        made.give_card(number)
        page = words(made.client.get(made.path + "/card", follow=True))
        notice = re.findall(r'<p class="notice-title">(.*?)</p>', page)
        assert notice in (["Your bank declined this card."], []), notice
    assert "declined" in plain(page) and 'name="number"' not in page and made.status() == "open"
    assert "If Lea pays, you can try again after that." in plain(page), "the order expires within a day"


def test_can_use_three_cards_even_if_they_are_good(finn: Mate) -> None:
    for _ in range(2):
        finn.post("/withdraw")
        finn.give_card()
        assert finn.status() == "pledged"
    finn.post("/withdraw")
    refused = finn.get("/card")
    page = plain(words(refused))
    assert refused.status_code == 429 and "No more cards for now" in page
    assert "If Lea pays, you can pay your share after that." in page and "declined" not in page
    assert finn.status() == "open"


def test_cannot_use_a_fourth_card_on_a_page_that_is_still_open(finn: Mate) -> None:
    finn.post("/withdraw")
    opened = finn.get("/card")["Location"]
    for _ in range(2):
        finn.give_card()
        finn.post("/withdraw")
    back = finn.client.post(opened, {"number": mates.FINNS, "expiry": "08 / 49", "code": "123"})
    answer = finn.client.get(back["Location"], follow=True)
    assert answer.status_code == 429 and finn.status() == "open"
    assert "No more cards for now" in words(answer)


def test_reads_when_the_limit_ends_if_the_order_lasts_that_long(finn: Mate) -> None:
    for _ in range(2):
        finn.post("/withdraw")
        finn.give_card()
    finn.post("/withdraw")
    CardTry.objects.update(created_at=clock.now() - timedelta(hours=23, minutes=30))
    page = plain(words(finn.get("/card")))
    assert "No money was taken. Try again in 30 minutes." in page


def test_keeps_the_hold_if_no_other_card_is_allowed(finn: Mate) -> None:
    for _ in range(2):
        finn.post("/withdraw", another="1")
        finn.give_card()
    refused = finn.post("/withdraw", another="1")
    assert refused.status_code == 429 and finn.status() == "pledged"
    assert "You’re still in. The hold on your card stays." in plain(words(refused))


def test_pledges_of_ended_orders_count_for_a_day(acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declines, "PER_PHONE_OF_PLEDGE", Limit(2, timedelta(days=1)))
    answers = []
    for _ in range(3):
        order = factories.checkout(acme)
        (asked,) = mates.split(order, 2000, everyone_first=True)
        SmsMessage.objects.all().delete()  # otherwise the number must wait for its next code
        finn = Mate(asked)
        finn.sign_in()
        answers.append(finn.get("/card").status_code)
        if answers[-1] == 302:
            finn.give_card()
            assert finn.status() == "pledged"
        cancellations.cancel(acme, order.pk, cause=CAUSE)
    assert answers == [302, 302, 429]


def test_the_limits_are_read_from_indexes(finn: Mate) -> None:
    """The service checks the limits twice for each card. The table has the cards of two days."""
    finn.share.refresh_from_db()
    assert finn.share.mate is not None
    with connection.cursor() as cursor:
        cursor.execute(OTHER_TRIES)
        cursor.execute("ANALYZE hosted_page_cardtry")
    with CaptureQueriesContext(connection) as queries:
        declines.check_limits(PaymentTarget(finn.share.checkout, finn.share), finn.share.mate, "192.0.2.1")
    read = [query["sql"] for query in queries if "hosted_page_cardtry" in query["sql"]]
    assert len(read) == 3
    scanned = {name for sql in read for name in plans.scans(sql)}
    assert {name for name in scanned if "card" in name} == set(), scanned
