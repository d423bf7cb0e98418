"""The pumps end late checkouts in time, and log the checkout if they fail."""

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout import cancellations, expiry, tasks
from checkout.models import Checkout
from checkout.states import Status
from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE, make_late
from tests.outages import leave_in_doubt

pytestmark = pytest.mark.django_db


class TestThePump:
    def test_lapses_and_expires_orders_queued_behind_captures_in_doubt(
        self, acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks, "BATCH", 2)
        for _ in range(2):
            in_doubt = pay(factories.checkout(acme))
            leave_in_doubt(in_doubt)
            make_late(in_doubt)
        late, unpaid = pay(factories.checkout(acme)), factories.checkout(acme)
        make_late(late)
        make_late(unpaid)
        tasks.expire_due()
        late.refresh_from_db()
        unpaid.refresh_from_db()
        assert (late.status, unpaid.status) == ("voided", "expired")


@pytest.mark.rule("lapse.void")
class TestTheNextLapse:
    def test_is_awaited_by_the_pump(self, held: Checkout) -> None:
        ends_in(held, 0.3)
        tasks.expire_due()
        held.refresh_from_db()
        assert held.status == "voided"

    def test_between_two_batches_is_not_missed(
        self, acme: Merchant, pay: Callable[..., Checkout], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first, second = pay(factories.checkout(acme)), pay(factories.checkout(acme))
        make_late(first)
        ends_in(second, 0.2)
        expire = tasks._expire_all

        def slowly(status: Status, end: float) -> None:
            expire(status, end)
            if status == Status.AUTHORIZED:
                time.sleep(0.3)

        monkeypatch.setattr(tasks, "_expire_all", slowly)
        tasks.expire_due()
        assert [read.status for read in Checkout.objects.order_by("created_at")] == ["voided", "voided"]

    def test_ignores_holds_with_an_open_operation(self, held: Checkout) -> None:
        leave_in_doubt(held)
        ends_in(held, -0.1)
        assert expiry.seconds_to_next_lapse() is None
        ends_in(held, 10)
        assert expiry.seconds_to_next_lapse() is None


def ends_in(held: Checkout, seconds: float) -> None:
    """Make a hold end in this many seconds."""
    until = clock.now() + timedelta(seconds=seconds)
    Checkout.objects.filter(pk=held.pk).update(capture_before=until)


@pytest.mark.rule("environment.logs")
class TestAFailure:
    """If a pump fails on a row, it logs the ids of the merchant and the checkout."""

    @pytest.fixture
    def fail(self, settings: Settings, tmp_path: Path) -> Callable[[str], None]:
        settings.FAIL_POINTS = str(tmp_path)

        def arm(point: str) -> None:
            (tmp_path / point).write_text("raise")

        return arm

    def test_of_an_operation_is_logged_with_merchant_and_checkout(
        self, held: Checkout, fail: Callable[[str], None], caplog: pytest.LogCaptureFixture
    ) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        fail("before_call.void")
        tasks.finish_operations()
        (line,) = lines(caplog)
        assert line["verb"] == "finish_operation" and is_of(line, held)

    def test_of_an_expiry_is_logged_with_merchant_and_checkout(
        self, held: Checkout, fail: Callable[[str], None], caplog: pytest.LogCaptureFixture
    ) -> None:
        make_late(held)
        # The pump fails twice: first for the whole batch, and then for only this checkout.
        fail("event_written")
        fail(f"event_written.checkout.voided.{held.pk}")
        tasks.expire_due()
        of_all, alone = lines(caplog)
        assert "checkout" not in of_all and is_of(alone, held)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found: list[Any] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [line for line in found if line["event"] == "row failed"]


def is_of(line: dict[str, Any], checkout: Checkout) -> bool:
    return (line["merchant"], line["checkout"]) == (str(checkout.merchant_id), str(checkout.pk))
