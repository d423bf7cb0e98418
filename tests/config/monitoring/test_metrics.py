"""The content of /metrics, the callers that may read the page, and how often the page queries the database."""

import re
from datetime import UTC, datetime, timedelta
from typing import NoReturn
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from config.lib import clock
from config.lib.bulkhead import Bulkhead, Busy
from config.monitoring import metrics
from payments.discrepancies import kinds, reporting
from portal.backoffice import figures

pytestmark = pytest.mark.django_db
TOKEN = "nobody-guesses-this-token"


def page_text() -> str:
    return metrics.metrics_text().decode()


def fail(*_: object) -> NoReturn:
    raise OperationalError("away")


@pytest.mark.rule("environment.metrics")
class TestAccess:
    @pytest.mark.parametrize(
        "header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
    )
    def test_requires_the_token(self, client: Client, settings: Settings, header: str | None) -> None:
        settings.METRICS_TOKEN = TOKEN
        headers = {} if header is None else {"Authorization": header}
        assert client.get("/metrics", headers=headers).status_code == 404
        assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200

    @pytest.mark.parametrize("header", ["Bearer ", "Bearer None", "Bearer"])
    def test_is_impossible_without_a_configured_token(
        self, client: Client, settings: Settings, header: str
    ) -> None:
        settings.METRICS_TOKEN = ""
        assert client.get("/metrics", headers={"Authorization": header}).status_code == 404


@pytest.mark.rule("environment.metrics")
class TestRequests:
    def test_are_counted_by_route_and_never_by_path(self, client: Client) -> None:
        token = "kX3vWq9ZtR2mLb7Ay5Hw"
        for path in (f"/pay/share/{token}", f"/{token}", f"/pay?id={token}"):
            client.get(path)
        client.generic("BREW", "/pay")
        assert token not in page_text() and "BREW" not in page_text()
        assert re.search(
            r'checkout_requests_total\{method="GET",route="pay",status="404"\} [1-9]', page_text()
        )
        assert 'method="-"' in page_text()


@pytest.mark.rule("environment.metrics")
class TestFigures:
    def test_say_how_long_the_oldest_row_waits_and_what_is_open(self) -> None:
        reporting.report(kinds.DISPUTED, uuid4())
        cache.clear()
        metrics.read_figures()
        assert 'checkout_discrepancies{kind="disputed"} 1.0' in page_text()
        assert 'checkout_queue_oldest_seconds{queue="Operations to finish"} 0.0' in page_text()
        assert "checkout_database_answers 1.0" in page_text()

    def test_are_read_by_one_process_every_five_seconds_at_most(self) -> None:
        cache.clear()
        with CaptureQueriesContext(connection) as first:
            found = figures.read_figures()
        with CaptureQueriesContext(connection) as second:
            assert figures.read_figures() == found
        own = [query["sql"] for query in second if '"cache"' not in query["sql"]]
        assert own == [query for query in own if "SAVEPOINT" in query]
        assert len([query for query in first if "payments_operation" in query["sql"]]) >= 2

    def test_say_by_how_much_the_clock_is_ahead(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) + timedelta(seconds=90))
        metrics.read_figures()
        assert -91 < (REGISTRY.get_sample_value("checkout_clock_ahead_seconds") or 0) < -89

    def test_report_that_the_database_is_unavailable(self) -> None:
        with connection.execute_wrapper(fail):
            metrics.read_figures()
        assert "checkout_database_answers 0.0" in page_text() and "checkout_queue_late{" not in page_text()


class TestBulkheads:
    def test_count_refused_callers(self) -> None:
        one = Bulkhead(1, name="test_metrics")
        assert one.enter()
        with one.slot() as slot, pytest.raises(Busy):
            slot.wait()
        labels = {"bulkhead": "test_metrics"}
        assert REGISTRY.get_sample_value("checkout_slots_refused_total", labels) == 1
        one.sample()
        assert REGISTRY.get_sample_value("checkout_slots_taken", labels) == 1
