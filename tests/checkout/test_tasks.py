"""The pumps of checkouts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout import cancellations, tasks
from checkout.models import Checkout
from payments.models import Merchant
from tests import factories
from tests.factories import CAUSE, make_late
from tests.outages import leave_in_doubt

pytestmark = pytest.mark.django_db


class TestThePump:
    def test_lets_lapse_and_expire_what_stands_behind_captures_in_doubt(
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


@pytest.mark.rule("environment.logs")
class TestAFailure:
    """A row at which a pump fails has a line that says whose it is."""

    @pytest.fixture
    def fail(self, settings: Settings, tmp_path: Path) -> Callable[[str], None]:
        settings.FAIL_POINTS = str(tmp_path)

        def arm(point: str) -> None:
            (tmp_path / point).write_text("raise")

        return arm

    def test_at_an_operation_is_told_with_merchant_and_checkout(
        self, held: Checkout, fail: Callable[[str], None], caplog: pytest.LogCaptureFixture
    ) -> None:
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        fail("before_call.void")
        tasks.finish_operations()
        (line,) = lines(caplog)
        assert line["verb"] == "finish" and is_of(line, held)

    def test_at_a_deadline_is_told_with_merchant_and_checkout(
        self, held: Checkout, fail: Callable[[str], None], caplog: pytest.LogCaptureFixture
    ) -> None:
        make_late(held)
        fail("event_written")  # of all that are late together, then of this one alone
        fail(f"event_written.checkout.voided.{held.pk}")
        tasks.expire_due()
        of_all, alone = lines(caplog)
        assert "checkout" not in of_all and is_of(alone, held)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found: list[Any] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [line for line in found if line["event"] == "row failed"]


def is_of(line: dict[str, Any], checkout: Checkout) -> bool:
    return (line["merchant"], line["checkout"]) == (str(checkout.merchant_id), str(checkout.pk))
