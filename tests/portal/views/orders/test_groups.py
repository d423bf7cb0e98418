"""The page that lists orders that customers split with mates."""

import csv
import io
import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from checkout import captures, refunds
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from portal.models import Role
from tests import mates
from tests.factories import CAUSE, MerchantFactory
from tests.hosted_page.browsers import Mate, Payer
from tests.outside import dispute
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
    """Return the text of a page, with single spaces."""
    plain = re.sub(r"<[^>]+>", " ", page.content.decode())  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", plain)


def test_shows_counts_and_sums_and_no_person(owner: Client, order: Checkout, finn: Mate) -> None:
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    page = text(owner.get("/portal/groups"))
    assert "Orders split 1 of 1 captured, 100%" in page and "Mates paid 1 of 2 50%" in page
    assert "Came in from mates £20.00 of £50.00 asked" in page
    assert "Equally 0" in page and "Different amounts 1 100% By item 0" in page
    assert "Group Created today Mates paid" in page
    assert "Mates who were refunded count as paid, but their money is not in “From mates”." in page
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
    assert "How fast mates pay appears here" in text(owner.get("/portal/groups"))
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    PaymentRequest.objects.update(expires_at=clock.now())
    assert "an hour 50%" in text(owner.get("/portal/groups"))


def test_aligns_the_sums_in_their_columns(owner: Client, order: Checkout) -> None:
    page = owner.get("/portal/groups").content.decode()
    assert '<th scope="col" class="table-number">From mates</th>' in page
    assert '<td class="table-from table-number">' in page


def test_gives_the_list_as_a_file(owner: Client, order: Checkout, finn: Mate) -> None:
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    Checkout.objects.update(created_at=clock.now() - timedelta(days=6))
    answer = owner.get("/portal/groups.csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer).decode("utf-8-sig"))))
    assert [(row["mates"], row["mates_paid"], row["from_mates"]) for row in rows] == [("2", "1", "20.00")]
    assert b"".join(owner.get("/portal/groups.csv?range=24h")).count(b"\n") == 1, "only the heading"
    shown = owner.get("/portal/groups?range=24h").content.decode()
    assert "/portal/groups.csv?range=24h" in shown and order.merchant_order_id not in shown
    assert order.merchant_order_id in owner.get("/portal/groups?range=30d").content.decode()


def test_leaves_out_money_that_was_refunded(owner: Client, order: Checkout, finn: Mate) -> None:
    finn.pay()
    assert mates.settled(finn.share) == "reimbursed"
    refunds.accept(order.merchant, order.pk, ref="r-1", cause=CAUSE)
    assert mates.settled(finn.share) == "refunded"
    page = text(owner.get("/portal/groups"))
    assert "Came in from mates £0.00 of £50.00 asked" in page and "Mates paid 1 of 2" in page
    rows = csv.DictReader(io.StringIO(b"".join(owner.get("/portal/groups.csv")).decode("utf-8-sig")))
    assert [row["from_mates"] for row in rows] == ["0.00"]


@pytest.mark.usefixtures("posted")
def test_of_a_disputed_order_does_not_say_that_it_collects(owner: Client, order: Checkout) -> None:
    assert "Collecting" in text(owner.get("/portal/groups"))
    dispute(order.payment)
    page = text(owner.get("/portal/groups"))
    assert "Disputed" in page and "Collecting" not in page


@pytest.mark.parametrize(
    ("amount", "is_equal"), [(15000, True), (15002, True), (15003, False), (14999, False)]
)
def test_an_order_is_split_equally_if_the_lead_bears_as_much_as_each_mate(
    owner: Client, order: Checkout, amount: int, *, is_equal: bool
) -> None:
    order.payment_requests.update(amount=5000)
    Checkout.objects.filter(pk=order.pk).update(amount=amount)
    assert f"Equally {int(is_equal)} " in text(owner.get("/portal/groups"))


def test_counts_a_split_by_item_only_as_such(owner: Client, order: Checkout) -> None:
    order.payment_requests.update(amount=5000, units=[1])
    Checkout.objects.filter(pk=order.pk).update(amount=15000)
    page = text(owner.get("/portal/groups"))
    assert "Equally 0 0% Different amounts 0 0% By item 1 100%" in page


def test_belongs_to_its_merchant(order: Checkout) -> None:
    stranger = stage.browser(stage.person(MerchantFactory.create(), Role.OWNER))
    page = text(stranger.get("/portal/groups"))
    assert "No split orders in this period" in page and "Orders that customers split appear here." in page
    assert order.merchant_order_id not in page and "Mates paid" not in page, (
        "a page without orders has no zeros"
    )
