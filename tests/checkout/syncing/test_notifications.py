"""The service does not trust notifications. A notification only makes it query the provider sooner."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from django.test import Client

from checkout import captures, refunds, tasks
from checkout.models import Checkout
from checkout.proof import ledger_proof
from payments.models import Discrepancy, Inquiry, Operation
from payments.provider import Notification, Verdict
from payments.providers.sandbox import fault_injection, notifications
from payments.providers.sandbox.models import Call
from tests import factories
from tests.factories import CAUSE
from tests.outages import pass_time, pump
from tests.outside import end_of
from tests.refusals import nothing_moves

pytestmark = pytest.mark.django_db


PATH = "/provider/notifications"


def send(notification: Notification, *, at: float | None = None, header: str | None = None) -> Any:
    """Send a notification with the bank's signature."""
    body = orjson.dumps(notification)
    signed = notifications.sign(body, int(time.time() if at is None else at)) if header is None else header
    headers = {notifications.HEADER: signed}
    return Client().post(PATH, body, content_type="application/json", headers=headers)


def notification_of(operation: Operation, verdict: Verdict, **changes: Any) -> Notification:
    said = Notification(str(uuid4()), operation.payment_id, operation.kind, verdict, operation.pk)
    return replace(said, **changes)


class TestASettledRefund:
    @pytest.mark.rule("doubt.notification")
    def test_is_found_by_its_notification(self, accepted: Operation, posted: list[int]) -> None:
        tasks.finish_operations()
        assert end_of(accepted) == ("refunding", "pending", "pending")
        notifications.send_due()
        assert (posted, end_of(accepted)) == ([204], ("refunding", "pending", "pending"))
        tasks.finish_operations()
        assert end_of(accepted) == ("refunded", "succeeded", "settled")
        assert set(factories.balances(accepted.payment.checkout_uuid).values()) == {0}

    def test_is_found_without_it(self, accepted: Operation) -> None:
        pump()
        assert end_of(accepted) == ("refunded", "succeeded", "settled")

    def test_with_two_notifications_is_settled_once(self, accepted: Operation, posted: list[int]) -> None:
        notifications.send_due()
        tasks.finish_operations()
        with nothing_moves():
            assert send(notification_of(accepted, Verdict.SUCCEEDED)).status_code == 204
            tasks.finish_operations()
            tasks.answer_inquiries()
        assert not Discrepancy.objects.exists()
        assert Operation.objects.filter(kind="refund").count() == 1

    def test_with_a_late_pending_notification_is_no_discrepancy(self, accepted: Operation) -> None:
        pump()
        assert end_of(accepted)[1] == "succeeded"
        with nothing_moves():
            assert send(notification_of(accepted, Verdict.PENDING)).status_code == 204
        assert not Discrepancy.objects.exists()

    def test_that_is_missing_for_a_day_is_reported_once(self, accepted: Operation) -> None:
        Call.objects.filter(kind="refund").update(settles_at="2100-01-01T00:00Z")
        pass_time(accepted, hours=25)
        for silent in (1, 0):  # the bank does not answer at first, and then answers "pending" again
            fault_injection.set_fault(verb="look_up", mode="down", times=silent)
            pump()
            assert end_of(accepted) == ("refunding", "pending", "pending")
            assert Discrepancy.objects.get(operation=accepted).kind == "in_doubt_for_a_day"

    def test_that_fails_leaves_the_order_captured_and_accepts_a_new_reference(
        self, unpaid: Checkout, pay: Callable[..., Checkout], posted: list[int]
    ) -> None:
        merchant = unpaid.merchant
        captures.capture(merchant, pay(unpaid, "4000000000005126").pk, cause=CAUSE)
        for ref in ("r-1", "r-2"):
            assert refunds.accept(merchant, unpaid.pk, ref=ref, cause=CAUSE).is_new
            tasks.finish_operations()
            notifications.send_due()
            tasks.finish_operations()
            part = Operation.objects.filter(kind="refund").latest("created_at")
            assert end_of(part) == ("captured", "failed", "failed")
        again = refunds.accept(merchant, unpaid.pk, ref="r-1", cause=CAUSE)
        assert not again.is_new and again.refund.failure_reason == "card_account_closed"
        assert factories.balances(unpaid.pk) == {"provider": 9000, "merchant": -9000}


class TestAMessage:
    @pytest.mark.rule("doubt.notification")
    def test_before_the_call_changes_nothing(self, captured: Checkout) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        planned = Operation.objects.select_related("payment").get(kind="refund")
        with nothing_moves():
            assert send(notification_of(planned, Verdict.SUCCEEDED)).status_code == 204
            tasks.answer_inquiries()
        assert not Discrepancy.objects.exists()
        tasks.finish_operations()
        assert end_of(planned)[1] == "pending"

    def test_that_overtakes_the_response_does_not_change_the_outcome(
        self, held: Checkout, posted: list[int]
    ) -> None:
        fault_injection.set_fault(verb="capture", mode="notify_first", times=1)
        checkout = captures.capture(held.merchant, held.pk, cause=CAUSE)
        assert (checkout.status, posted) == ("captured", [204])
        assert Operation.objects.filter(kind="capture").count() == 1
        assert not Discrepancy.objects.exists() and ledger_proof.find_breaches() == []

    @pytest.mark.rule("doubt.notification")
    def test_about_an_unknown_payment_is_reported(self, accepted: Operation) -> None:
        stranger = uuid4()
        with nothing_moves():
            for _ in range(2):
                assert send(notification_of(accepted, Verdict.SUCCEEDED, payment=stranger)).status_code == 204
            tasks.finish_operations()
            tasks.answer_inquiries()
        found = Discrepancy.objects.get()
        assert (found.kind, found.subject, found.merchant) == ("missing_here", stranger, None)

    @pytest.mark.rule("doubt.notification", "sync.books")
    @pytest.mark.parametrize("operation", [None, uuid4()], ids=["of nobody", "of an unknown one"])
    def test_about_an_unknown_refund_triggers_a_read_of_the_books(
        self, captured: Checkout, operation: UUID | None
    ) -> None:
        assert captured.payment_id is not None
        said = Notification(str(uuid4()), captured.payment_id, "refund", Verdict.SUCCEEDED, operation)
        with nothing_moves():
            assert send(said).status_code == 204
            assert Inquiry.objects.get().payment_id == captured.payment_id
            tasks.answer_inquiries()
        assert not Inquiry.objects.exists() and not Discrepancy.objects.exists()

    @pytest.mark.rule("doubt.notification", "sync.books")
    @pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.PENDING, Verdict.UNKNOWN])
    def test_that_contradicts_an_outcome_only_triggers_a_read_of_the_books(
        self, captured: Checkout, verdict: Verdict
    ) -> None:
        capture = Operation.objects.select_related("payment").get(kind="capture")
        with nothing_moves():
            assert send(notification_of(capture, verdict)).status_code == 204
            assert Inquiry.objects.exists()
            tasks.answer_inquiries()
        assert not Inquiry.objects.exists() and not Discrepancy.objects.exists()

    @pytest.mark.rule("doubt.notification")
    def test_about_a_known_outcome_triggers_no_read_of_the_books(self, captured: Checkout) -> None:
        capture = Operation.objects.select_related("payment").get(kind="capture")
        with nothing_moves():
            assert send(notification_of(capture, Verdict.SUCCEEDED)).status_code == 204
        assert not Inquiry.objects.exists()

    @pytest.mark.rule("doubt.notification")
    @pytest.mark.parametrize("header", ["", "t=1,v1=", "t=now,v1=00", "v1=00", "t=1;v1=00", "é=ü"])
    def test_that_is_not_signed_is_a_400_and_one_discrepancy(self, accepted: Operation, header: str) -> None:
        with nothing_moves():
            for _ in range(2):
                assert send(notification_of(accepted, Verdict.SUCCEEDED), header=header).status_code == 400
            tasks.finish_operations()
        assert Discrepancy.objects.get().kind == "forged_notification"

    @pytest.mark.parametrize("seconds", [-310, 310])
    def test_of_another_time_is_a_400(self, accepted: Operation, seconds: int) -> None:
        with nothing_moves():
            answer = send(notification_of(accepted, Verdict.SUCCEEDED), at=time.time() + seconds)
        assert (answer.status_code, Discrepancy.objects.get().kind) == (400, "forged_notification")

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"\xff\x00",
            b"[]",
            b'{"id": 1}',
            b'{"id":"x","verdict":"pending","payment":5}',
            b'{"id":"x","payment":"x"}',
            b'{"id":"x","payment":"01a2232a-58ad-7429-bf5d-327ec611ac80","verdict":"maybe"}',
        ],
    )
    @pytest.mark.parametrize("is_signed", [False, True])
    def test_of_garbage_is_a_400_signed_or_not(self, db: None, body: bytes, is_signed: bool) -> None:
        headers = {notifications.HEADER: notifications.sign(body, int(time.time()))} if is_signed else {}
        answer = Client().post(PATH, body, content_type="application/json", headers=headers)
        assert answer.status_code == 400
        assert Discrepancy.objects.get().kind == "forged_notification"

    def test_must_be_sent_with_post(self, db: None) -> None:
        assert Client().get(PATH).status_code == 405
