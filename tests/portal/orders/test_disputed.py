"""A dispute as the merchant sees it: the customer's reason, and where the money is."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.formats import date_format

from checkout.models import Checkout
from config.lib import clock
from payments.models import Dispute
from portal.models import Role
from portal.orders import disputed
from tests.outside import decide, dispute
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


@pytest.mark.parametrize("reason", [*disputed.REASON_SENTENCES, "bank_cannot_process", ""])
def test_each_dispute_reason_is_shown_as_a_sentence(reason: str) -> None:
    said = disputed.reason_in_words(reason)
    assert said[0].isupper() and said.rstrip("”").endswith(".") and "_" not in said


@pytest.mark.parametrize(
    ("is_won", "where"),
    [(None, "places-hold"), (True, "places-shop"), (False, "Back with the customer")],
)
def test_the_page_of_a_disputed_order_says_where_the_money_is(
    captured: Checkout, is_won: bool | None, where: str
) -> None:
    found = dispute(captured.payment)
    Dispute.objects.filter(pk=found.pk).update(reason="fraudulent")
    if is_won is not None:
        decide(found, is_won=is_won)
    page = stage.browser(stage.person(captured.merchant, Role.OWNER)).get(f"/portal/checkouts/{captured.pk}")
    words = page.content.decode()
    assert where in words and words.count("Where the money is") == 1
    assert ("If the bank decides in your favour, you get it back" in re.sub(r"\s+", " ", words)) == (
        is_won is None
    )
    assert "payer" not in words.lower(), "one word for the person"
    assert ("At the bank" in words) == (is_won is None)
    assert "I did not make this payment." in words and "<dd>fraudulent" not in words.lower()


@pytest.mark.parametrize(
    ("due_in", "title", "left"),
    [
        (timedelta(days=7), "Send your evidence by", "7 days left"),
        (timedelta(days=1), "Send your evidence by", "1 day left"),
        (timedelta(days=-1), "Evidence was due", "The deadline has passed"),
    ],
)
def test_the_page_shows_the_banks_deadline_alone(
    captured: Checkout, due_in: timedelta, title: str, left: str
) -> None:
    found = dispute(captured.payment)
    Dispute.objects.filter(pk=found.pk).update(respond_by=clock.now() + due_in)
    page = stage.browser(stage.person(captured.merchant, Role.OWNER)).get(f"/portal/checkouts/{captured.pk}")
    words = re.sub(r"\s+", " ", page.content.decode())
    assert title in words and left in words
    assert (
        "and keeps it until the dispute is decided. If you do not answer, the customer gets the money."
        in words
    )
    assert ("<dt>Answer by</dt>" in words) == (due_in > timedelta())
    opened = timezone.localtime(found.opened_at)
    assert re.search(rf"<dt>Opened</dt><dd class=\"whole\"> ?{date_format(opened, 'j M')}", words), (
        "with its day"
    )
    assert "The bank’s deadline" not in words, "one date everywhere"
