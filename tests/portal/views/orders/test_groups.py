"""The page of orders that customers split with mates."""

import csv
import io
import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from checkout import captures
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from portal.models import Role
from tests import mates
from tests.factories import CAUSE, MerchantFactory
from tests.hosted_page.browsers import Mate, Payer
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.groups")]


@pytest.fixture
def order(unpaid: Checkout) -> Checkout:
    """Return an order that Lea has paid and split with Finn (£20.00) and Amy (£30.00)."""
    lead = Payer(unpaid)
    lead.pay(split="own", name=["Finn", "Amy"], amount=["20", "30"], your_name="Lea")
    return captures.capture(unpaid.merchant, unpaid.pk, cause=CAUSE)


@pytest.fixture
def finn(order: Checkout) -> Mate:
    return Mate(order.payment_requests.get(position=2))


@pytest.fixture
def amy(order: Checkout) -> PaymentRequest:
    return order.payment_requests.get(position=3)


@pytest.fixture
def owner(order: Checkout) -> Client:
    return stage.browser(stage.person(order.merchant, Role.OWNER))


def text(page: object) -> str:
    """Return the words of a page, with single spaces."""
    plain = re.sub(r"<[^>]+>", " ", page.content.decode())  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", plain)


def test_shows_counts_and_sums_and_no_person(owner: Client, order: Checkout, finn: Mate) -> None:
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    page = text(owner.get("/portal/groups"))
    assert "Orders split 1 " in page and "Mates paid 1 of 2 50 %" in page
    assert "Came in from mates £20.00 of £50.00 asked" in page
    assert "Equally 0" in page and "Different amounts 1 100 %" in page
    assert "Collecting" in page and "2 shares: 1 paid." in owner.get("/portal/groups").content.decode()
    for hidden in ("Finn", "Amy", "Lea", "900456", "4444"):
        assert hidden not in page


def test_says_when_all_have_paid_and_when_the_links_have_ended(
    owner: Client, order: Checkout, finn: Mate, amy: PaymentRequest
) -> None:
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    PaymentRequest.objects.filter(pk=amy.pk).update(status="expired", expires_at=clock.now())
    assert "Links ended" in text(owner.get("/portal/groups"))
    PaymentRequest.objects.filter(pk=amy.pk).delete()
    Checkout.objects.update(captured_at=F("captured_at") - timedelta(minutes=32))
    page = text(owner.get("/portal/groups"))
    assert "All paid" in page and "1 of 1" in page and "32 min" in page


def test_shows_how_fast_ended_shares_were_paid(owner: Client, order: Checkout, finn: Mate) -> None:
    assert "No links have ended" in text(owner.get("/portal/groups"))
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    PaymentRequest.objects.update(expires_at=clock.now())
    assert "an hour 50 %" in text(owner.get("/portal/groups"))


def test_gives_the_list_as_a_file(owner: Client, order: Checkout, finn: Mate) -> None:
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    answer = owner.get("/portal/groups.csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode("utf-8-sig"))))
    assert [(row["mates"], row["mates_paid"], row["from_mates"]) for row in rows] == [("2", "1", "20.00")]


def test_belongs_to_its_merchant(order: Checkout) -> None:
    stranger = stage.browser(stage.person(MerchantFactory.create(), Role.OWNER))
    page = text(stranger.get("/portal/groups"))
    assert "No split orders yet" in page and order.merchant_order_id not in page
