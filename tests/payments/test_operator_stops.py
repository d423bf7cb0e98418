"""Operators can stop new business. Unresolved operations, cancellations and refunds continue."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from checkout import captures, tasks
from checkout.models import Checkout
from config.lib.process import cached_reads
from payments import operator_stops
from payments.models import Merchant, Operation, Switch
from payments.providers.sandbox import fault_injection
from portal.models import AuditEntry, User
from tests import factories
from tests.conftest import Api
from tests.portal import people
from tests.refusals import nothing_moves, refused

pytestmark = pytest.mark.django_db
Stop = Callable[[], None]


@pytest.fixture(params=["the merchant", "all"])
def stopped(request: pytest.FixtureRequest, acme: Merchant) -> tuple[Stop, int, str]:
    """Return a function that stops new business, and the status and code of requests that are then refused."""
    if request.param == "all":
        return lambda: factories.stop(None), 503, "service_unavailable"
    return lambda: factories.stop(acme), 403, "merchant_suspended"


def pay(api: Api, checkout: Checkout) -> Any:
    path = f"/api/sandbox/v1/checkouts/{checkout.pk}/pay"
    return api.client.post(path, {}, content_type="application/json", headers=api.headers({}))


class TestAStop:
    @pytest.mark.rule("operator.stop")
    def test_refuses_new_checkouts(self, api: Api, stopped: tuple[Stop, int, str]) -> None:
        stop, status, code = stopped
        stop()
        with nothing_moves():
            answer = api.post("checkouts", factories.order())
        refused(answer, status, code)
        assert answer.get("Retry-After") == ("1" if status == 503 else None)

    @pytest.mark.rule("operator.stop")
    def test_refuses_payments(self, api: Api, unpaid: Checkout, stopped: tuple[Stop, int, str]) -> None:
        stop, status, code = stopped
        stop()
        with nothing_moves():
            refused(pay(api, unpaid), status, code)

    @pytest.mark.rule("operator.stop")
    def test_refuses_captures(self, api: Api, held: Checkout, stopped: tuple[Stop, int, str]) -> None:
        stop, status, code = stopped
        stop()
        with nothing_moves():
            refused(api.post(f"checkouts/{held.pk}/capture"), status, code)

    @pytest.mark.rule("operator.stop")
    def test_does_not_affect_reads_and_cancels(
        self, api: Api, held: Checkout, stopped: tuple[Stop, int, str]
    ) -> None:
        stopped[0]()
        assert api.get(f"checkouts/{held.pk}").json()["data"]["status"] == "authorized"
        assert api.get("checkouts").status_code == 200
        assert api.post(f"checkouts/{held.pk}/cancel").json()["data"]["status"] == "voided"
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "succeeded"

    def test_does_not_affect_refunds_and_repeated_captures(
        self, api: Api, captured: Checkout, stopped: tuple[Stop, int, str]
    ) -> None:
        stopped[0]()
        assert api.post(f"checkouts/{captured.pk}/capture").json()["data"]["status"] == "captured"
        refund = {"merchant_refund_ref": "r-1"}
        assert api.post(f"checkouts/{captured.pk}/refund", refund).status_code == 204
        for _ in range(2):
            Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
            tasks.finish_operations()
        captured.refresh_from_db()
        assert captured.status == "refunded"

    @pytest.mark.rule("operator.stop")
    def test_does_not_affect_a_capture_in_doubt(
        self, api: Api, held: Checkout, stopped: tuple[Stop, int, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fault_injection.set_fault(verb="capture", mode="down", times=1)
        refused(api.post(f"checkouts/{held.pk}/capture"), 504, "outcome_unknown")
        stopped[0]()
        monkeypatch.setattr(captures, "JOIN_SECONDS", 0.15)
        refused(api.post(f"checkouts/{held.pk}/capture"), 409, "operation_in_progress")
        Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
        tasks.finish_operations()
        answer = api.post(f"checkouts/{held.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")
        assert Operation.objects.filter(kind="capture").count() == 1

    def test_of_one_merchant_leaves_the_others(self, api: Api, rival_api: Api, rival: Merchant) -> None:
        factories.stop(rival)
        refused(rival_api.post("checkouts", factories.order()), 403, "merchant_suspended")
        assert api.post("checkouts", factories.order()).status_code == 201

    def test_that_is_lifted_has_no_effect(self, api: Api, held: Checkout, acme: Merchant) -> None:
        factories.stop(acme)
        factories.stop(None)
        refused(api.post(f"checkouts/{held.pk}/capture"), 403, "merchant_suspended")
        factories.stop(acme, is_stopped=False)
        refused(api.post(f"checkouts/{held.pk}/capture"), 503, "service_unavailable")
        factories.stop(None, is_stopped=False)
        assert api.post(f"checkouts/{held.pk}/capture").status_code == 200


class TestWhenItIsEffective:
    @pytest.mark.rule("operator.stop")
    @pytest.mark.parametrize("is_stopped", [True, False])
    def test_within_five_seconds_in_a_running_process(
        self,
        acme: Merchant,
        monkeypatch: pytest.MonkeyPatch,
        django_assert_num_queries: Any,
        is_stopped: bool,
    ) -> None:
        moment = [time.monotonic()]
        monkeypatch.setattr(cached_reads, "time", SimpleNamespace(monotonic=lambda: moment[0]))
        Switch.objects.create(merchant=acme, is_stopped=not is_stopped, reason="Test")
        operator_stops.reread_stops()
        assert self.is_stopped(acme) is not is_stopped
        Switch.objects.update(is_stopped=is_stopped)
        moment[0] += 2.9
        with django_assert_num_queries(0):
            assert self.is_stopped(acme) is not is_stopped
        moment[0] += 2
        assert self.is_stopped(acme) is is_stopped

    def is_stopped(self, merchant: Merchant) -> bool:
        try:
            operator_stops.check(merchant)
        except operator_stops.MerchantSuspended:
            return True
        return False

    def test_while_one_thread_reads_the_others_continue(
        self, acme: Merchant, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
    ) -> None:
        moment = [time.monotonic()]
        monkeypatch.setattr(cached_reads, "time", SimpleNamespace(monotonic=lambda: moment[0]))
        operator_stops.check(acme)
        moment[0] += 3.5
        with operator_stops.stopped_merchants._reading, django_assert_num_queries(0):
            operator_stops.check(acme)


class TestTheAdmin:
    ADD = "/admin/payments/switch/add/"

    @pytest.mark.rule("operator.stop")
    def test_stops_all_merchants_only_after_a_confirmation(
        self, operator: Client, api: Api, acme: Merchant
    ) -> None:
        for asked in (
            operator.get(self.ADD),
            operator.post(self.ADD, {"is_stopped": "on", "reason": "Fraud"}),
        ):
            page = asked.content.decode()
            assert "<h1>Stop all merchants?</h1>" in page and "no merchant can create orders" in page
            assert not Switch.objects.exists()
        done = operator.post(self.ADD, {"confirmed": "1", "words": "Fraud"}, follow=True).content.decode()
        assert "All merchants are stopped." in done and "tone-done" not in done
        assert "Stop all merchants" not in done and "Stopped</span>" in done
        refused(api.post("checkouts", factories.order()), 503, "service_unavailable")
        switch = Switch.objects.get()
        again = operator.post(self.ADD, {"confirmed": "1", "words": "Again"}, follow=True).content.decode()
        assert "All merchants were stopped already." in again
        lift = {"action": "lift", "_selected_action": str(switch.pk)}
        shown = operator.get(f"/admin/payments/switch/{Switch.objects.get().pk}/change/").content.decode()
        assert "<h1>All merchants are stopped</h1>" in shown and "Null for all merchants" not in shown
        asked = operator.post("/admin/payments/switch/", lift)
        assert "<h1>Resume all merchants?</h1>" in asked.content.decode()
        operator.post("/admin/payments/switch/", lift | {"confirmed": "1", "words": "Clear"})
        listed = operator.get("/admin/payments/switch/").content.decode()
        assert "Stop all merchants\n  </a>" in listed and "Ended</span>" in listed
        assert api.post("checkouts", factories.order()).status_code == 201
        kept = LogEntry.objects.filter(object_id=str(switch.pk)).order_by("id")
        assert [entry.change_message for entry in kept] == ["Stopped: Fraud", "Resumed: Clear"]
        assert {str(entry.user) for entry in kept} == {"operator@example.com"}

    def test_lifts_the_stop_of_one_merchant(self, operator: Client, api: Api, acme: Merchant) -> None:
        switch = operator_stops.suspend(acme, reason="Fraud")
        assert switch is not None
        page = operator.get(f"/admin/payments/switch/{switch.pk}/change/").content.decode()
        assert ">Resume</button>" in page and 'name="is_stopped"' not in page
        chosen = {"action": "lift", "_selected_action": str(switch.pk), "confirmed": "1", "words": "Clear"}
        operator.post("/admin/payments/switch/", chosen)
        assert api.post("checkouts", factories.order()).status_code == 201
        assert AuditEntry.objects.get().action == "payments_resumed"

    def test_refuses_operators_without_the_permission(self, client: Client, acme: Merchant) -> None:
        person = User.objects.create_user("looker@example.com", is_staff=True)
        person.user_permissions.set(Permission.objects.filter(codename="view_switch"))
        people.operate(client, person)
        assert client.get(self.ADD).status_code == 403
        assert client.post(self.ADD, {"confirmed": "1", "words": "x"}).status_code == 403
        assert not Switch.objects.exists()

    def test_requires_a_login_to_set_a_switch(self, acme: Merchant) -> None:
        answer = Client().post(self.ADD, {"confirmed": "1", "words": "Mischief"})
        assert answer.status_code == 302 and "login" in answer["Location"]
        assert not Switch.objects.exists()
