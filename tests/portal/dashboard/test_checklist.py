"""The integration checklist. Real traffic completes its steps."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from oauth2_provider.models import AccessToken

from checkout.models import Checkout, Refund
from config.lib import clock
from payments.models import Merchant
from portal.dashboard import checklist
from portal.models import Role
from portal.trials import made_orders
from portal.trials.cases import CASES
from tests import factories, mates
from tests.conftest import Api
from tests.portal import stage
from webhooks import endpoint_tests, outbox, resending, subscriptions
from webhooks.models import Attempt, EventType

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.ADMIN)


def filters(sql: str) -> str:
    """Return the filters with which the statement's generic plan discards rows after an index scan.

    The function drops the index `attempt_listed` first. On an empty table, all indexes cost the same, so the planner
    might choose the wrong one.
    """
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    asked = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", sql)
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX attempt_listed")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN (GENERIC_PLAN) {asked}")
        return " ".join(line for (line,) in cursor.fetchall() if "Filter:" in line)


class TestChecklist:
    def test_has_the_time_of_the_first_order_even_after_it_was_advanced(self, acme: Merchant) -> None:
        made = factories.checkout(acme)
        Checkout.objects.filter(pk=made.pk).update(created_at=made.created_at - timedelta(hours=1))
        at = checklist.checklist_of(acme)[1].at
        assert at is not None and abs(at - made.created_at) < timedelta(seconds=5)

    def test_an_order_that_the_portal_made_ticks_no_step(self, acme: Merchant, api: Api) -> None:
        made_orders.make_order(acme, cause=factories.CAUSE)
        token, made = checklist.checklist_of(acme)[:2]
        assert token.at == AccessToken.objects.get().created, "not the time of the portal's order"
        assert token.is_done and not made.is_done
        api.post("checkouts", factories.order())
        assert checklist.checklist_of(acme)[1].is_done

    def test_keeps_the_times_of_its_steps_in_order(self, acme: Merchant, api: Api) -> None:
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        stage.hold(Checkout.objects.get(pk=uuid))
        api.post(f"checkouts/{uuid}/capture")
        Checkout.objects.update(captured_at=F("captured_at") - timedelta(minutes=2))
        AccessToken.objects.update(created=clock.now() + timedelta(days=1))
        token, made, captured = (checklist.checklist_of(acme)[place].at for place in (0, 1, 3))
        assert token == made == captured is not None

    def test_ticks_itself_from_real_traffic(self, acme: Merchant, api: Api) -> None:
        def ticked_steps() -> list[bool]:
            return [step.is_done for step in checklist.checklist_of(acme)]

        assert ticked_steps() == [True, *[False] * 6], "the API's fixture has taken a token"
        uuid = api.post("checkouts", factories.order()).json()["data"]["checkout_uuid"]
        assert ticked_steps() == [True, True, *[False] * 5]
        factories.subscribe(acme, url=stage.URL, event_types=["*"])
        endpoint_tests.send_test_event(acme)
        stage.deliver(acme, 500)
        assert ticked_steps()[2] is False
        endpoint_tests.send_test_event(acme)
        stage.deliver(acme, 204)
        assert ticked_steps()[2] is True
        stage.hold(Checkout.objects.get(pk=uuid))
        first = stage.deliver(acme, 200)
        api.post(f"checkouts/{uuid}/capture")
        assert ticked_steps()[3:] == [True, False, False, False]
        assert checklist.checklist_of(acme)[3].at == Checkout.objects.get(pk=uuid).captured_at
        cause = factories.CAUSE
        resending.resend(acme, first.pk, cause=cause, although_over=True, although_delivered=True)
        stage.deliver(acme, 200)
        assert ticked_steps()[4] is True
        assert checklist.checklist_of(acme)[4].at == Attempt.objects.latest("started_at").started_at
        api.post(f"checkouts/{uuid}/refund", {"merchant_refund_ref": "r-1"})
        assert ticked_steps()[5] is False, "accepted, not settled"
        for _ in range(3):
            mates.pump(Checkout.objects.get(pk=uuid).pk)
        assert ticked_steps()[5] is True
        assert checklist.checklist_of(acme)[5].at == Refund.objects.get().settled_at is not None
        subscriptions.rotate(acme)
        assert ticked_steps()[6] is False
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        stage.deliver(acme, 200)
        assert ticked_steps() == [True] * 7

    def test_uses_indexes_for_rare_rows_with_any_cached_plan(self, acme: Merchant) -> None:
        statements: list[str] = []

        def record_query(execute: Callable[..., Any], sql: str, *given: Any) -> Any:
            statements.append(sql)
            return execute(sql, *given)

        with connection.execute_wrapper(record_query):
            checklist.checklist_of(acme)
        tested = next(sql for sql in statements if "FROM webhooks_attempt" in sql)
        assert "event_type" not in filters(tested)

    def test_page_names_the_next_step(self, client: Client) -> None:
        page = client.get("/portal/checklist").content.decode()
        assert f"0 of {5 + len(CASES)} done" in page and "button-pen" in page
