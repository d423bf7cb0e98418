"""A dispute as the merchant sees it: the customer's reason, and where the money is."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.formats import date_format
from pytest_django.fixtures import Settings

from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from payments import disputes, money
from payments.models import Dispute, Payment
from portal.models import Role
from portal.templatetags.portal import deadline
from tests import mates
from tests.outside import decide, dispute
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


@pytest.mark.parametrize("reason", [*disputes.REASON_SENTENCES, "bank_cannot_process", ""])
@pytest.mark.parametrize("kind", ["order", "share"])
def test_each_dispute_reason_is_shown_as_a_sentence(reason: str, kind: str) -> None:
    said = disputes.reason_in_words(Dispute(reason=reason, payment=Payment(kind=kind)))
    assert said.startswith("The customer’s " if kind == "order" else "The mate’s ")
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
    is_decided = is_won is not None
    assert ("<dt>Reason</dt><dd>“I did not make this payment.”</dd>" in words) == is_decided
    assert ("No answer needed any more" in words) == is_decided


@pytest.mark.parametrize(
    ("due_in", "title", "remaining"),
    [
        (timedelta(days=7), "Send your evidence by", "7 days left"),
        (timedelta(days=1), "Send your evidence by", "1 day left"),
        (timedelta(days=-1), "Evidence was due", "The deadline has passed"),
    ],
)
def test_the_page_shows_the_banks_deadline_alone(
    captured: Checkout, due_in: timedelta, title: str, remaining: str
) -> None:
    found = dispute(captured.payment)
    Dispute.objects.filter(pk=found.pk).update(respond_by=clock.now() + due_in)
    page = stage.browser(stage.person(captured.merchant, Role.OWNER)).get(f"/portal/checkouts/{captured.pk}")
    words = re.sub(r"\s+", " ", page.content.decode())
    assert title in words and remaining in words
    assert (
        "and keeps it until the dispute is decided. If you do not answer, the customer gets the money."
        in words
    )
    assert ("<dt>Answer by</dt>" in words) == (due_in > timedelta())
    due = deadline(clock.now() + due_in)
    is_open = due_in > timedelta()
    assert words.count(due) == (4 if is_open else 2), "title, advice, facts to copy, and panel"
    opened = timezone.localtime(found.opened_at)
    assert re.search(rf"<dt>Opened</dt><dd class=\"whole\"> ?{date_format(opened, 'j M')}", words), (
        "with its day"
    )
    assert "The bank’s deadline" not in words, "one date everywhere"


@pytest.mark.rule("sandbox.disputes")
@pytest.mark.parametrize("is_sandbox", [True, False])
def test_the_page_says_how_to_decide_a_dispute_in_the_sandbox(
    captured: Checkout, settings: Settings, *, is_sandbox: bool
) -> None:
    settings.SANDBOX = is_sandbox
    found = dispute(captured.payment)
    client = stage.browser(stage.person(captured.merchant, Role.OWNER))
    call = f"POST /api/sandbox/v1/checkouts/{captured.pk}/decide-dispute"
    page = client.get(f"/portal/checkouts/{captured.pk}").content.decode()
    assert (call in page) == is_sandbox
    decide(found, is_won=True)
    assert call not in client.get(f"/portal/checkouts/{captured.pk}").content.decode(), "it is decided"


@pytest.mark.rule("dispute.told")
def test_the_page_of_a_mates_dispute_names_the_mate_and_their_card(
    order: Checkout, shares: list[PaymentRequest]
) -> None:
    mates.pay(shares[0], card="5555555555554444")
    mates.settled(shares[0])
    shares[0].refresh_from_db()
    found = dispute(shares[0].payment)
    Dispute.objects.update(reason="fraudulent")
    PaymentRequest.objects.filter(pk=shares[0].pk).update(status="paid")  # as if the dispute began earlier
    client = stage.browser(stage.person(order.merchant, Role.OWNER))
    words = re.sub(r"\s+", " ", client.get(f"/portal/checkouts/{order.pk}").content.decode())
    title = f"A mate disputes {money.display(shares[0].amount, 'GBP')}"
    assert f"{title} (Mastercard ending 4444)." in words
    assert "The mate’s reason: “I did not make this payment.”" in words
    copied = re.sub(r"<[^>]+>", "", words[words.index("<pre") : words.index("</pre>")])
    assert title in copied and "4444" in copied and found.reference in copied and "fraudulent" not in copied
    assert "A mate’s Mastercard ending 4444" in words, "in the facts of the dispute"
    amount = money.display(shares[0].amount, "GBP")
    assert f'<dt>Taken back by a mate’s bank</dt><dd class="whole">{amount}</dd>' in words
    assert f'<dt>Paid back to the lead</dt><dd class="whole">{amount} of ' in words, (
        "the lead’s card has got it"
    )
    assert "It went back to the lead’s card." in words
    assert "customer disputes" not in words and "customer’s reason" not in words
    assert "If the mate is right, accept it" in words
    decide(found, is_won=False)
    assert "The mate keeps " in client.get(f"/portal/checkouts/{order.pk}").content.decode()
