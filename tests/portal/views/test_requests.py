"""The log of requests: what stands in it, what it finds, whose it is, and how PostgreSQL reads it."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from checkout.models import ApiCall, Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import ApiClient, Role
from portal.views import requests
from tests import factories, plans
from tests.conftest import Api
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.requests")]
MANY = """
INSERT INTO checkout_apicall (id, merchant_id, client_uuid, method, path, request_id, status, created_at, error_code)
SELECT uuidv7(- n * interval '1 minute'), merchant_id, client_uuid, method, path, 'req_' || n, status,
    now() - n * interval '1 minute', ''
FROM (SELECT * FROM checkout_apicall LIMIT 1) one, generate_series(1, 5000) n
"""


@pytest.fixture
def browser(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.DEVELOPER))


def log(browser: Client, query: str = "") -> str:
    return str(browser.get(f"/portal/requests?{query}").content.decode())


class TestRequests:
    def test_that_were_refused_say_why(self, browser: Client, api: Api) -> None:
        wrong = factories.order() | {"currency": "gbp"}
        answer = api.post("checkouts", wrong, X_Request_Id="mine-1")
        assert answer.status_code == 422
        (call,) = ApiCall.objects.all()
        assert (call.error_code, call.param) == ("validation_failed", "currency")
        words = log(browser)
        assert "POST checkouts" in words and "Refused" in words and "422" in words and "mine-1" in words
        assert "/api/docs#error-validation_failed" in words and "currency" in words
        assert str(ApiClient.objects.get()) in words

    def test_that_were_accepted_lead_to_their_order(
        self, browser: Client, api: Api, unpaid: Checkout
    ) -> None:
        assert api.post(f"checkouts/{unpaid.pk}/cancel").status_code == 200
        words = log(browser)
        assert f'href="/portal/checkouts/{unpaid.pk}"' in words and "Accepted" in words
        assert re.search(r"(under 10 ms|[0-9] s)</td>", words)

    def test_take_as_long_as_the_caller_waits(self, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel")
        (took,) = ApiCall.objects.values_list("duration_ms", flat=True)
        assert took is not None and 0 < took < 60_000

    def test_of_an_unnamed_or_endless_field_are_kept(
        self, browser: Client, api: Api, captured: Checkout
    ) -> None:
        api.post(f"checkouts/{captured.pk}/capture?{'x' * 300}=1")
        (call,) = ApiCall.objects.filter(status=422)
        assert call.param == "x" * 100

    def test_are_found(self, browser: Client, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel", X_Request_Id="mine-2")
        for query in ("q=mine-2", f"q={unpaid.pk}", f"q={unpaid.merchant_order_id}", "outcome=accepted"):
            assert "mine-2" in log(browser, query), query
        for query in ("q=mine-3", "outcome=refused"):
            assert "No requests match" in log(browser, query), query

    def test_of_a_stranger_are_not_there(self, rival: Merchant, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel", X_Request_Id="mine-4")
        theirs = stage.browser(stage.person(rival, Role.OWNER))
        assert "mine-4" not in log(theirs) and "No requests match" in log(theirs, "q=mine-4")

    def test_go_after_seven_days(self, browser: Client, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE checkout_apicall SET created_at = created_at - interval '7 days 1 second'")
        assert "No requests in the last 7 days" in log(browser)

    def test_are_read_in_the_order_of_an_index_however_many(
        self, browser: Client, api: Api, unpaid: Checkout
    ) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel")
        with connection.cursor() as cursor:
            cursor.execute(MANY)
            cursor.execute("ANALYZE checkout_apicall")
        with CaptureQueriesContext(connection) as asked:
            assert "Older" in log(browser)
        (sql,) = (query["sql"] for query in asked if 'FROM "checkout_apicall"' in query["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN {sql}")
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "created_at_id_idx" in plan or "apicall_of_merchant" in plan, plan
        assert "Sort Key" in plan and "Merge Append" in plan and "  Sort  " not in plan, plan
        assert plans.days(sql) <= plans.since(clock.now() - requests.SHOWN), "older partitions are left out"
