"""The sandbox helper `advance`, which lets time pass for one checkout."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from pytest_django.fixtures import Settings

from checkout import operation_recovery, tasks
from checkout.models import ApiCall, Checkout, IdempotencyKey
from checkout.proof import ledger_proof
from config.lib import clock
from payments import bookings, operation_queue
from payments.models import Booking, Discrepancy, Movement, Operation, Payment, Posting
from payments.provider import Verdict
from payments.providers.sandbox import client, notifications
from payments.providers.sandbox.models import BankNotification, Call
from portal.models import CheckoutNote, Role
from tests import factories
from tests.conftest import Api
from tests.factories import CAUSE
from tests.hosted_page.sandbox.calls import post
from tests.outside import DISPUTED, RETURNS, refund_outside
from tests.portal import stage
from webhooks.models import Delivery, Event, Subscription

pytestmark = pytest.mark.django_db
SPLIT = {"shares": [{"name": "Finn", "amount": 2000}]}


def refund(api: Api, checkout: Checkout) -> None:
    assert api.post(f"checkouts/{checkout.pk}/refund", {"merchant_refund_ref": "r"}).status_code == 204


def claim_accepted_refund(checkout: Checkout) -> Operation:
    """Send the refund of a checkout to the bank, which accepts it, and claim it like a worker that looks it up."""
    operation_recovery.finish_due_operations(checkout.pk)
    operation = Operation.objects.get(kind=Operation.Kind.REFUND)
    operation_queue.make_due(operation)
    (claimed,) = operation_queue.claim(limit=1, operation_uuid=operation.pk)
    return claimed


def finish_after_settlement(claimed: Operation) -> None:
    """Finish a claimed refund a moment after the bank has settled it, like a slow worker."""
    try:
        while not Call.objects.filter(kind="refund", verdict=Verdict.SUCCEEDED).exists():
            time.sleep(0.02)
        time.sleep(0.5)
        operation_recovery.finish_operation(claimed)
    finally:
        connection.close()


def seconds_between(end: str, start: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def story(checkout: Checkout) -> list[tuple[datetime, str]]:
    """Return the time and a label for each recorded change, call, operation and share, sorted by time."""
    events = [(row.created_at, f"{row.origin} to {row.to}") for row in checkout.changes.all()]
    events += [(row.created_at, f"{row.method} {row.path}") for row in ApiCall.objects.all()]
    events += [(row.created_at, row.kind) for row in Operation.objects.all()]
    events += [(row.ended_at, f"{row.kind} ended") for row in Operation.objects.all() if row.ended_at]
    events += [(row.created_at, f"share {row.position}") for row in checkout.payment_requests.all()]
    return sorted(events)


def rows_of_money() -> list[dict[str, Any]]:
    found: list[Any] = [*Movement.objects.order_by("pk").values(), *Booking.objects.values()]
    return found


class TestAdvance:
    @pytest.mark.rule("sandbox.advance")
    def test_lets_a_hold_lapse(self, api: Api, held: Checkout) -> None:
        assert post(api, held, "advance", {"seconds": 60}).json()["data"]["status"] == "authorized"
        held.refresh_from_db()
        assert Event.objects.get().valid_until == held.capture_before, "no attempt starts after it"
        shown = post(api, held, "advance", {"seconds": 61}).json()["data"]
        assert (shown["status"], shown["void_reason"]) == ("voided", "auth_expired")
        held.refresh_from_db()
        assert held.payment is not None and held.payment.status == "voided"

    def test_lets_an_unpaid_one_expire(self, api: Api, unpaid: Checkout) -> None:
        assert post(api, unpaid, "advance", {"seconds": 3600}).json()["data"]["status"] == "expired"

    def test_settles_a_refund(self, api: Api, captured: Checkout) -> None:
        api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"})
        assert post(api, captured, "advance", {"seconds": 10}).json()["data"]["status"] == "refunded"

    @pytest.mark.rule("sandbox.advance")
    @pytest.mark.django_db(transaction=True)
    def test_waits_for_a_refund_that_a_worker_has_claimed(
        self, api: Api, captured: Checkout, settings: Settings
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 2
        refund(api, captured)
        claimed = claim_accepted_refund(captured)
        with ThreadPoolExecutor(1) as pool:
            worker = pool.submit(finish_after_settlement, claimed)
            shown = post(api, captured, "advance", {"seconds": 10}).json()["data"]
            worker.result()
        assert (shown["status"], shown["refunds"][0]["status"]) == ("refunded", "settled")

    @pytest.mark.usefixtures("posted")
    def test_settles_a_refund_before_it_is_returned(
        self, api: Api, unpaid: Checkout, settings: Settings
    ) -> None:
        settings.SANDBOX_REFUND_SECONDS = 2
        post(api, unpaid, "pay", {"card": RETURNS})
        api.post(f"checkouts/{unpaid.pk}/capture")
        refund(api, unpaid)
        shown = post(api, unpaid, "advance", {"seconds": 5}).json()["data"]
        assert (shown["status"], shown["refunds"][0]["status"]) == ("refunded", "settled")
        shown = post(api, unpaid, "advance", {"seconds": 5}).json()["data"]
        assert (shown["status"], shown["refunds"][0]["status"]) == ("refunded", "failed")
        assert (
            shown["refunds"][0]["failure_reason"] == "card_account_closed"
            and ledger_proof.find_breaches() == []
        )
        notifications.send_due()
        tasks.answer_inquiries()
        assert not Discrepancy.objects.exclude(kind="refund_returned").exists(), "what it says again is known"

    @pytest.mark.rule("sandbox.advance")
    def test_lets_the_bank_open_a_dispute(self, api: Api, unpaid: Checkout) -> None:
        post(api, unpaid, "pay", {"card": DISPUTED})
        api.post(f"checkouts/{unpaid.pk}/capture")
        shown = post(api, unpaid, "advance", {"seconds": 30}).json()["data"]
        assert [(row["status"], row["amount"]) for row in shown["disputes"]] == [("open", 9000)]
        answer = api.post(f"checkouts/{unpaid.pk}/refund", {"merchant_refund_ref": "r"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_refundable")

    @pytest.mark.rule("sandbox.advance")
    def test_does_not_advance_another_order_at_the_bank(self, api: Api, unpaid: Checkout) -> None:
        other = factories.checkout(api.merchant)
        for checkout in (unpaid, other):
            post(api, checkout, "pay", {"card": DISPUTED})
            api.post(f"checkouts/{checkout.pk}/capture")
        (payment,) = Payment.objects.filter(checkout_uuid=other.pk)
        client.call_bank("advance", payments=[payment.pk], seconds=30)
        post(api, unpaid, "advance", {"seconds": 30})
        assert "disputes" not in api.get(f"checkouts/{other.pk}").json()["data"]
        assert not BankNotification.objects.filter(dispute__charge__payment=payment.pk).exists()

    @pytest.mark.rule("sandbox.advance")
    def test_moves_past_times_of_the_order_back(self, api: Api, captured: Checkout) -> None:
        refund(api, captured)
        before = api.get(f"checkouts/{captured.pk}").json()["data"]
        after = post(api, captured, "advance", {"seconds": 864_000}).json()["data"]
        assert after["status"] == "refunded", "it is due by then"
        assert after["updated_at"] > before["updated_at"]
        times = ("created_at", "authorized_at", "capture_before", "captured_at")
        for name in times:
            assert seconds_between(before[name], after[name]) == 864_000, name
        assert (
            seconds_between(before["refunds"][0]["created_at"], after["refunds"][0]["created_at"]) == 864_000
        )
        stays = before.keys() - {
            *times,
            "updated_at",
            "status",
            "refunds",
            "refunded_amount",
            "last_refund_at",
        }
        stays -= {"available_actions", "pending_operation"}
        assert {name: after[name] for name in stays} == {name: before[name] for name in stays}

    @pytest.mark.rule("sandbox.advance")
    def test_keeps_the_events_in_order(self, api: Api, unpaid: Checkout) -> None:
        Subscription.objects.create(merchant=api.merchant, url="http://127.0.0.1:9/", event_types=["*"])
        post(api, unpaid, "pay", SPLIT)
        api.post(f"checkouts/{unpaid.pk}/capture")
        before, ends = story(unpaid), unpaid.payment_requests.get().expires_at
        assert ends is not None
        post(api, unpaid, "advance", {"seconds": 1000})
        api.post(f"checkouts/{unpaid.pk}/refund", {"merchant_refund_ref": "r"})
        after = story(unpaid)
        assert [row[1] for row in after][: len(before)] == [row[1] for row in before]
        moved = [then - now for (then, _), (now, _) in zip(before, after, strict=False)]
        assert set(moved) == {timedelta(seconds=1000)}
        assert unpaid.payment_requests.get().expires_at == ends - timedelta(seconds=1000)

    @pytest.mark.rule("sandbox.advance")
    def test_moves_the_notes_of_the_order_back(self, api: Api, unpaid: Checkout) -> None:
        user = stage.person(api.merchant, Role.OWNER).user
        own, others = (
            CheckoutNote.objects.create(merchant=api.merchant, user=user, checkout_uuid=uuid, text="Called.")
            for uuid in (unpaid.pk, factories.checkout(api.merchant).pk)
        )
        post(api, unpaid, "advance", {"seconds": 60})
        moved = {note.pk: note.created_at for note in CheckoutNote.objects.all()}
        assert moved == {own.pk: own.created_at - timedelta(seconds=60), others.pk: others.created_at}

    @pytest.mark.rule("sandbox.advance")
    def test_leaves_events_keys_and_postings_unchanged(self, api: Api, captured: Checkout) -> None:
        api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r"}, idempotency_key="k")
        told = list(Event.objects.order_by("pk").values_list("pk", "body", "created_at"))
        keys = list(IdempotencyKey.objects.values())
        books = list(Posting.objects.order_by("pk").values())
        post(api, captured, "advance", {"seconds": 1})
        assert list(Event.objects.order_by("pk").values_list("pk", "body", "created_at")) == told
        assert list(IdempotencyKey.objects.values()) == keys
        assert list(Posting.objects.order_by("pk").values())[: len(books)] == books
        assert ledger_proof.find_breaches() == []

    @pytest.mark.rule("sandbox.advance")
    def test_never_dates_an_event_before_its_predecessor(self, api: Api, unpaid: Checkout) -> None:
        post(api, unpaid, "pay", {})
        shown = post(api, unpaid, "advance", {"seconds": 600}).json()["data"]
        authorized, voided = Event.objects.order_by("pk")
        assert (authorized.type, voided.type) == ("checkout.authorized", "checkout.voided")
        assert voided.created_at >= authorized.created_at
        assert shown["voided_at"] == shown["capture_before"] < shown["updated_at"]
        assert json.loads(voided.plain_body)["created_at"] == clock.iso(voided.created_at)

    @pytest.mark.rule("sandbox.advance")
    def test_is_refused_while_a_card_operation_is_open(self, api: Api, unpaid: Checkout) -> None:
        post(api, unpaid, "pay", {})
        Operation.objects.update(state="needs_action", ended_at=None)
        before = list(Checkout.objects.values())
        answer = post(api, unpaid, "advance", {"seconds": 1})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "operation_in_progress")
        assert list(Checkout.objects.values()) == before

    @pytest.mark.rule("sandbox.advance")
    @pytest.mark.parametrize(
        ("card", "status"), [("4000000000006983", "voided"), ("4000000000006975", "captured")]
    )
    def test_reaches_the_deadline_of_a_capture_in_doubt(
        self, api: Api, unpaid: Checkout, card: str, status: str
    ) -> None:
        assert post(api, unpaid, "pay", {"card": card}).status_code == 200
        api.post(f"checkouts/{unpaid.pk}/capture")
        for _ in range(3):
            answer = post(api, unpaid, "advance", {"seconds": 121})
            assert answer.status_code == 200, answer.json()
            if answer.json()["data"]["status"] == status:
                break
        assert answer.json()["data"]["status"] == status
        assert [event.created_at for event in Event.objects.order_by("pk")] == sorted(
            Event.objects.values_list("created_at", flat=True)
        )

    def test_changes_nothing_of_another_order(self, api: Api, unpaid: Checkout) -> None:
        other = factories.checkout(api.merchant)
        before = list(Checkout.objects.filter(pk=other.pk).values()), list(other.changes.values())
        post(api, unpaid, "advance", {"seconds": 60})
        assert before == (list(Checkout.objects.filter(pk=other.pk).values()), list(other.changes.values()))

    @pytest.mark.usefixtures("posted")
    def test_moves_only_the_times_of_movements_and_bookings_back(self, api: Api, captured: Checkout) -> None:
        refund_outside(captured.payment, 2000)
        refund = Operation.objects.get(purpose="outside")
        bookings.settle_outside(refund, 500, note="By hand", now=clock.now(), cause=CAUSE)
        before = rows_of_money()
        assert post(api, captured, "advance", {"seconds": 60}).status_code == 200
        after = rows_of_money()
        by, times = timedelta(seconds=60), ("occurred_at", "recorded_at", "created_at")
        assert len(before) == 3 and after == [
            {name: value - by if name in times else value for name, value in row.items()} for row in before
        ]
        for rows in (Movement.objects, Booking.objects):
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                rows.update(amount=F("amount") - 1)
            with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
                rows.all().delete()

    def test_is_the_only_way_to_change_times_of_history_and_notes(self, unpaid: Checkout) -> None:
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            unpaid.changes.update(created_at=F("created_at") - timedelta(days=1))
        user = stage.person(unpaid.merchant, Role.OWNER).user
        CheckoutNote.objects.create(merchant=unpaid.merchant, user=user, checkout_uuid=unpaid.pk, text="A")
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            CheckoutNote.objects.update(created_at=F("created_at") - timedelta(days=1))
        with connection.cursor() as cursor, pytest.raises(IntegrityError), transaction.atomic():
            cursor.execute("SELECT advance_history(%s, %s)", [unpaid.pk, 864_001])

    def test_brings_the_next_attempt_of_its_deliveries_nearer(self, api: Api, unpaid: Checkout) -> None:
        Subscription.objects.create(merchant=api.merchant, url="http://127.0.0.1:9/", event_types=["*"])
        post(api, unpaid, "pay", {})
        before = Delivery.objects.get().next_attempt_at
        post(api, unpaid, "advance", {"seconds": 30})
        after = Delivery.objects.get().next_attempt_at
        assert before is not None and after is not None and (before - after).total_seconds() == 30

    @pytest.mark.rule("sandbox.advance")
    @pytest.mark.parametrize("seconds", [0, -1, 864_001, "10", 1.5, None, True])
    def test_takes_up_to_ten_days(self, api: Api, unpaid: Checkout, seconds: Any) -> None:
        answer = post(api, unpaid, "advance", {"seconds": seconds})
        assert (answer.status_code, answer.json()["error"]["param"]) == (422, "seconds")
        unpaid.refresh_from_db()
        assert unpaid.status == "created"
