import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from checkout import states
from checkout.models import Bill, Change, Checkout, orders
from checkout.states import MoveRefused, Status
from config.lib import clock
from payments.models import Merchant
from tests.factories import CAUSE, checkout, item


@pytest.mark.django_db
class TestMove:
    def test_refuses_a_change_that_the_table_lacks_before_writing(self, unpaid: Checkout) -> None:
        now = clock.now()
        with CaptureQueriesContext(connection) as queries, pytest.raises(MoveRefused):
            unpaid.move(Status.REFUNDED, CAUSE, now)
        assert not queries.captured_queries
        unpaid.refresh_from_db()
        assert unpaid.status == "created"

    @pytest.mark.rule("money.states")
    def test_adds_a_line_of_history(self, held: Checkout) -> None:
        lines = list(
            Change.objects.filter(checkout=held).order_by("created_at", "id").values_list("origin", "to")
        )
        assert lines == [("", "created"), ("created", "authorized")]


@pytest.mark.django_db
def test_a_bill_read_together_with_its_order_is_complete(acme: Merchant) -> None:
    made = checkout(
        acme,
        items=[item(custom_data={"seat": ["A1", 1.5, None]}), item(custom_data=None), item(category="fee")],
        total_amount=3 * 9000,
    )
    expected = [tuple(line) for line in Bill.objects.get(pk=made.pk).lines]
    found = Checkout.objects.with_bill().get(pk=made.pk)
    with CaptureQueriesContext(connection) as queries:
        bill = found.bill
        assert bill == expected
    assert not queries.captured_queries
    assert bill == made.bill and bill[0].custom_data == {"seat": ["A1", 1.5, None]}


def test_bills_that_are_read_at_the_same_time_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a lock protected the reads, they could deadlock: each read can wait for the other's connection."""
    both_ask = threading.Barrier(2)

    def first() -> None:
        both_ask.wait(5)

    rows = SimpleNamespace(filter=lambda **_: SimpleNamespace(first=first))
    monkeypatch.setattr(orders.Bill, "objects", rows)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda found: found.bill, [Checkout(), Checkout()])) == [[], []]


@pytest.mark.django_db
class TestTheGuards:
    @pytest.mark.rule("money.states")
    @pytest.mark.parametrize(
        ("origin", "to"),
        [
            (origin, to)
            for origin in Status
            for to in Status
            if origin != to and (origin, to) not in states.ALLOWED_MOVES and origin == Status.CREATED
        ],
    )
    def test_the_database_refuses_a_move_by_hand(self, unpaid: Checkout, origin: str, to: str) -> None:
        with pytest.raises(IntegrityError, match="never goes from"), transaction.atomic():
            Checkout.objects.filter(pk=unpaid.pk).update(status=to)
        unpaid.refresh_from_db()
        assert unpaid.status == "created"

    def test_a_checkout_begins_as_created(self, unpaid: Checkout) -> None:
        unpaid.pk, unpaid.status = uuid7(), Status.CAPTURED
        with pytest.raises(IntegrityError, match="begins as created"), transaction.atomic():
            unpaid.save(force_insert=True)

    def test_history_is_append_only(self, unpaid: Checkout) -> None:
        for forbidden in (Change.objects.all().delete, lambda: Change.objects.update(to="voided")):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                forbidden()
        assert Change.objects.get(checkout=unpaid).to == "created"

    def test_a_held_checkout_needs_its_deadline(self, held: Checkout) -> None:
        with pytest.raises(IntegrityError, match="a_held_checkout_has_a_payment"), transaction.atomic():
            Checkout.objects.filter(pk=held.pk).update(capture_before=None)

    def test_two_checkouts_of_one_order_live_side_by_side(self, unpaid: Checkout) -> None:
        assert checkout(unpaid.merchant).pk != unpaid.pk
