"""The request log: its content, its search, access to it, and its query plans."""

import re
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from checkout.api import call_log, statements
from checkout.models import ApiCall, Checkout
from config.lib import clock
from payments.models import Merchant
from portal.models import ApiClient, Role
from portal.views import requests
from tests import factories, plans
from tests.conftest import Api
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("portal.requests")]
API = "/api/merchant/v1/"
MANY = """
INSERT INTO checkout_apicall (id, merchant_id, client_uuid, method, path, request_id, status, created_at, error_code)
SELECT uuidv7(- n * interval '1 minute'), merchant_id, client_uuid, method, path, 'req_' || n, status,
    now() - n * interval '1 minute', ''
FROM (SELECT * FROM checkout_apicall LIMIT 1) one, generate_series(1, 5000) n
"""


browser = stage.client_of(Role.DEVELOPER)


def log(browser: Client, query: str = "") -> str:
    """Return the page's HTML, without the `<wbr>` tags in paths."""
    return str(browser.get(f"/portal/requests?{query}").content.decode()).replace("<wbr>", "")


class TestRefusals:
    """Refused requests in the log, including requests other than a POST under /checkouts."""

    def calls(self) -> list[tuple[str, str, int, str]]:
        rows = ApiCall.objects.order_by("created_at", "pk")
        return [(row.method, row.path.removeprefix(API), row.status, row.error_code) for row in rows]

    def test_for_a_scope_a_query_an_address_or_a_body_are_listed(
        self, browser: Client, api: Api, held: Checkout
    ) -> None:
        api.get("checkouts?limit=0")
        api.get("checkouts/0193c0de-1111-7000-8000-00000000beef")
        api.post("webhooks/subscription", {"url": 5})
        api.token = api.get_token(scope="checkouts:read")
        api.post(f"checkouts/{held.pk}/capture", X_Request_Id="mine-5")
        told = self.calls()
        assert [row[2:] for row in told] == [
            (422, "validation_failed"),
            (404, "checkout_not_found"),
            (422, "validation_failed"),
            (403, "insufficient_scope"),
        ]
        assert told[0][:2] == ("GET", "checkouts") and told[3][1] == f"checkouts/{held.pk}/capture"
        assert ApiCall.objects.order_by("created_at", "pk")[0].param == "limit"
        words = log(browser)
        assert "insufficient_scope" in words and "mine-5" in words and f"GET {API}checkouts<" in words
        story = browser.get(f"/portal/checkouts/{held.pk}").content.decode()
        assert "You called capture, 403 insufficient_scope" in story and "checkout_not_found" not in story

    @pytest.mark.rule("portal.roles")
    def test_for_an_order_of_another_merchant_do_not_show_its_order_id(
        self, rival: Merchant, rival_api: Api, held: Checkout
    ) -> None:
        refused = rival_api.post(f"checkouts/{held.pk}/capture")
        assert refused.status_code == 404 and ApiCall.objects.get().merchant == rival
        page = log(stage.browser(stage.person(rival, Role.DEVELOPER)))
        assert "checkout_not_found" in page and held.merchant_order_id not in page

    def test_by_a_limit_are_listed_ten_times_a_minute(
        self, browser: Client, api: Api, settings: Settings
    ) -> None:
        settings.LIMITS = settings.LIMITS | {"reads": "1/hour", "refusals_listed": "3/hour"}
        answers = [api.get("checkouts").status_code for _ in range(8)]
        assert answers == [200] + [429] * 7
        assert self.calls() == [("GET", "checkouts", 429, "rate_limited")] * 3
        api.post("checkouts", {"currency": "gbp"})
        assert [row[2:] for row in self.calls()[3:]] == [(422, "validation_failed")], "of each code so many"

    def test_by_a_limit_are_listed_twice_as_often_for_all_keys_of_a_merchant(
        self, api: Api, settings: Settings
    ) -> None:
        settings.LIMITS = settings.LIMITS | {"refusals_listed": "2/hour"}
        for one in (api, Api(api.merchant), Api(api.merchant)):
            assert [one.get("checkouts?limit=x").status_code for _ in range(3)] == [422] * 3
        assert len(self.calls()) == 4

    def test_are_recorded_only_for_known_clients_with_errors(self, api: Api, held: Checkout) -> None:
        api.get(f"checkouts/{held.pk}")
        api.get("checkouts")
        api.token = "nobodys"
        assert api.get("checkouts").status_code == 401
        assert self.calls() == []

    def test_are_sent_even_if_they_cannot_be_recorded(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(statements, "INSERT_API_CALL", "SELECT 1/0 -- %(id)s")
        monkeypatch.setattr(call_log.write_call, "__defaults__", ("SELECT 1/0 -- %(id)s",))
        with transaction.atomic():
            assert api.get("checkouts?limit=0").status_code == 422
            transaction.set_rollback(True)

    def test_twice_refused_under_a_key_are_listed_once_each(self, api: Api) -> None:
        for _ in range(2):
            api.post("checkouts", {"currency": "gbp"}, idempotency_key="bad\x01key")
        assert len(self.calls()) == 2


class TestRequests:
    def test_that_were_refused_say_why(self, browser: Client, api: Api) -> None:
        wrong = factories.order() | {"currency": "gbp"}
        answer = api.post("checkouts", wrong, X_Request_Id="mine-1")
        assert answer.status_code == 422
        (call,) = ApiCall.objects.all()
        assert (call.error_code, call.param) == ("validation_failed", "currency")
        words = log(browser)
        assert (
            f"POST {API}checkouts<" in words and "Refused" in words and "422" in words and "mine-1" in words
        )
        assert "/api/docs#error-validation_failed" in words and "currency" in words
        assert str(ApiClient.objects.get()) in words

    def test_without_an_answer_of_the_bank_are_not_called_refused(
        self, browser: Client, api: Api, unpaid: Checkout
    ) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel", X_Request_Id="mine-2")
        ApiCall.objects.update(status=504, error_code="outcome_unknown")
        words = log(browser, "outcome=unknown")
        assert "Outcome unknown</span>" in words and "Refused</span>" not in words and "mine-2" in words
        for outcome in ("accepted", "refused"):
            assert "No requests match" in log(browser, f"outcome={outcome}")

    def test_that_were_accepted_lead_to_their_order(
        self, browser: Client, api: Api, unpaid: Checkout
    ) -> None:
        assert api.post(f"checkouts/{unpaid.pk}/cancel").status_code == 200
        words = log(browser)
        assert f'href="/portal/checkouts/{unpaid.pk}"' in words and "Accepted" in words
        assert "Cancel, <a" in words, "several rows of one order are told apart"
        assert re.search(r"(under 10\sms|[0-9]\sm?s)</td>", words)

    def test_have_the_duration_that_the_caller_waited(self, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel")
        (took,) = ApiCall.objects.values_list("duration_ms", flat=True)
        assert took is not None and 0 < took < 60_000

    def test_with_a_very_long_parameter_are_recorded(
        self, browser: Client, api: Api, captured: Checkout
    ) -> None:
        api.post(f"checkouts/{captured.pk}/capture?{'x' * 300}=1")
        (call,) = ApiCall.objects.filter(status=422)
        assert call.param == "x" * 100

    def test_can_be_searched(self, browser: Client, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel", X_Request_Id="mine-2")
        for query in ("q=mine-2", f"q={unpaid.pk}", f"q={unpaid.merchant_order_id}", "outcome=accepted"):
            assert "mine-2" in log(browser, query), query
        for query in ("q=mine-3", "outcome=refused"):
            assert "No requests match" in log(browser, query), query

    def test_of_another_merchant_are_not_shown(self, rival: Merchant, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel", X_Request_Id="mine-4")
        theirs = stage.browser(stage.person(rival, Role.OWNER))
        assert "mine-4" not in log(theirs) and "No requests match" in log(theirs, "q=mine-4")

    def test_are_hidden_after_seven_days(self, browser: Client, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE checkout_apicall SET created_at = created_at - interval '7 days 1 second'")
        assert "No requests in the last 7 days" in log(browser)

    def test_of_several_days_name_the_day_of_each(self, browser: Client, api: Api, unpaid: Checkout) -> None:
        api.post(f"checkouts/{unpaid.pk}/cancel")
        words = log(browser)
        assert "Time today</th>" in words and "All from today, in London time." in words
        assert re.search(r"\d\d:\d\d:\d\d</td>", words) and "Today, " not in words
        ApiCall.objects.update(created_at=clock.now() - timedelta(days=3))
        api.get("checkouts?limit=0")
        words = log(browser)
        assert "Time</th>" in words and "Times in London time." in words
        assert re.search(r">Today, \d\d:\d\d:\d\d</td>", words)
        assert re.search(r">\d+ [A-Z][a-z]{2}( \d{4})?, \d\d:\d\d:\d\d</td>", words)

    def test_are_read_in_the_order_of_an_index_for_any_number(
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
        assert "created_at_id_idx" in plan or "apicall_listed" in plan, plan
        assert "Sort Key" in plan and "Merge Append" in plan and "  Sort  " not in plan, plan
        assert plans.days(sql) <= plans.since(clock.now() - requests.SHOWN_PERIOD), (
            "older partitions are left out"
        )
