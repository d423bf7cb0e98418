"""The operators' overview page: operations in doubt, late queues, and pumps that operators start."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config import schedule
from config.lib import clock
from hosted_page.models import SmsMessage
from payments import restore_guard
from payments.discrepancies import kinds, reporting
from payments.models import Merchant, Operation
from portal.backoffice import ages, overview_figures, pumps, queues
from portal.mail import outbox
from portal.models import OutboundEmail, User
from tests import factories
from tests.factories import make_late
from tests.portal import people
from tests.refusals import nothing_moves
from tests.webhooks.story import emit, subscribe
from webhooks.models import Delivery, Endpoint, EventType

pytestmark = pytest.mark.django_db
PAGE = "/admin/operations/"
RUN = "/admin/operations/run"
LONG_AGO = timedelta(hours=30)


def queue(title: str) -> queues.Queue:
    return next(found for found in queues.read_queues(clock.now()) if found.title == title)


def age(rows: Any, **columns: timedelta) -> None:
    """Set the given columns of the rows to times in the past."""
    rows.update(**{column: clock.now() - ago for column, ago in columns.items()})


class TestPage:
    def test_says_that_nothing_is_open_on_a_quiet_day(self, operator: Client) -> None:
        page = operator.get(PAGE).content.decode()
        for words in (
            "No operation is in doubt.",
            "No discrepancy is open.",
            "No delivery that was parked today is still open.",
            "No endpoint is failing.",
        ):
            assert words in page
        assert "is-late" not in page

    @pytest.mark.rule("operator.page")
    def test_shows_what_is_in_doubt_the_oldest_first(self, operator: Client, unclear: Operation) -> None:
        age(Operation.objects.filter(pk=unclear.pk), created_at=timedelta(minutes=3))
        (row,) = overview_figures.read_board().unresolved
        assert (row.operation, row.amount, row.age, row.verdict) == (
            unclear,
            "£90.00",
            "3 minutes",
            "late",
        )
        page = operator.get(PAGE).content.decode()
        assert f"/admin/payments/operation/{unclear.pk}/change/" in page
        assert f"/admin/checkout/checkout/{unclear.payment.checkout_uuid}/change/" in page

    @pytest.mark.rule("operator.page")
    def test_counts_age_and_tries_from_the_first_key(self, unclear: Operation) -> None:
        start = clock.now() - timedelta(minutes=5)
        Operation.objects.filter(pk=unclear.pk).update(created_at=start, attempts=4)
        unclear.refresh_from_db()
        factories.replace_key(factories.replace_key(unclear))
        (row,) = overview_figures.read_board().unresolved
        assert (row.operation.attempts, row.attempts, row.since) == (0, 4, start)
        assert (row.age, row.verdict) == ("5 minutes", "late")
        assert f"Sent at\N{NO-BREAK SPACE}{start:%H:%M:%S}. No answer yet after 4 tries." in row.summary

    def test_lists_the_oldest_first_request_first(
        self, unclear: Operation, acme: Merchant, pay: Callable[..., Checkout]
    ) -> None:
        age(Operation.objects.filter(pk=unclear.pk), created_at=timedelta(minutes=5))
        unclear.refresh_from_db()
        newest = factories.replace_key(unclear)
        other = pay(factories.checkout(acme, merchant_order_id="B-1"))
        Operation.objects.filter(payment=other.payment).update(state="unknown", ended_at=None)
        between = Operation.objects.filter(payment=other.payment)
        age(between, created_at=timedelta(minutes=1))
        rows = overview_figures.read_board().unresolved
        assert [row.operation.pk for row in rows] == [newest.pk, between.get().pk]

    @pytest.mark.rule("operator.page")
    def test_shows_the_next_try_or_that_it_is_due(self, unclear: Operation) -> None:
        soon = clock.now() + timedelta(minutes=1)
        Operation.objects.filter(pk=unclear.pk).update(next_attempt_at=soon)
        assert (
            f"The next try is at\N{NO-BREAK SPACE}{soon:%H:%M:%S}."
            in overview_figures.read_board().unresolved[0].summary
        )
        age(Operation.objects.filter(pk=unclear.pk), next_attempt_at=timedelta(seconds=1))
        assert "The next try is due." in overview_figures.read_board().unresolved[0].summary

    @pytest.mark.rule("operator.page")
    def test_shows_what_needs_attention(self, operator: Client, acme: Merchant) -> None:
        told = subscribe()
        parked = emit(told)
        Delivery.objects.filter(pk=parked.pk).update(
            status="parked", next_attempt_at=None, ended_at=clock.now()
        )
        Endpoint.objects.create(
            subscription=told, failing_since=clock.now() - LONG_AGO, last_error="HTTP 500"
        )
        reporting.report(kinds.ANOTHER_AMOUNT, acme.pk, merchant=acme)
        factories.stop(None)
        page = operator.get(PAGE).content.decode()
        page = " ".join(page.split())
        assert (
            "1 delivery parked today." in page
            and "Failing</span>" in page
            and ", for 1 day: HTTP 500." in page
        )
        assert "The provider reports a different amount" in page and "All merchants" in page

    @pytest.mark.rule("operator.page", "resend.closed")
    def test_counts_the_mails_that_were_dropped_in_the_last_day(self, operator: Client) -> None:
        assert "Dropped" not in operator.get(PAGE).content.decode()
        for key, ago in (("1", 2), ("2", 3), ("3", 30)):
            OutboundEmail.objects.create(kind="login", key=key, dropped_at=clock.now() - timedelta(hours=ago))
        page = " ".join(operator.get(PAGE).content.decode().split())
        assert "The mail server did not accept 2 emails of the last day, so they were not sent:" in page
        dropped = operator.get("/admin/portal/outboundemail/?state=dropped").content.decode()
        assert dropped.count(">Login</a>") == 3

    def test_does_not_count_closed_parked_deliveries(self) -> None:
        parked = emit(subscribe())
        now = clock.now()
        Delivery.objects.filter(pk=parked.pk).update(status="parked", next_attempt_at=None, ended_at=now)
        assert overview_figures.read_board().parked == 1
        Delivery.objects.filter(pk=parked.pk).update(closed_at=now)
        assert overview_figures.read_board().parked == 0

    @pytest.mark.rule("event.test")
    def test_does_not_count_parked_test_events(self) -> None:
        ended = {"status": "parked", "next_attempt_at": None, "ended_at": clock.now()}
        Delivery.objects.filter(pk=emit(subscribe()).pk).update(event_type="webhook.test", **ended)
        assert overview_figures.read_board().parked == 0

    @pytest.mark.parametrize("is_superuser", [True, False])
    def test_runs_at_most_twenty_statements(
        self, client: Client, unclear: Operation, is_superuser: bool
    ) -> None:
        person = User.objects.create_user("x@example.com", is_staff=True, is_superuser=is_superuser)
        person.user_permissions.set(Permission.objects.filter(codename__endswith="_operation"))
        people.operate(client, person)
        client.get(PAGE)  # a session's first request also stores its start time
        with CaptureQueriesContext(connection) as asked:
            assert client.get(PAGE).status_code == 200
        assert len(asked) <= 20

    def test_is_only_for_operators(self, client: Client, operator: Client) -> None:
        assert Client().get(PAGE).status_code == 302
        client.force_login(User.objects.create_user("staff@example.com", is_staff=True))
        assert client.get(PAGE).status_code == 403

    def test_is_named_on_the_first_page(self, operator: Client) -> None:
        assert PAGE in operator.get("/admin/").content.decode()


class TestQueues:
    def test_are_fine_while_they_are_empty(self) -> None:
        found = queues.read_queues(clock.now())
        assert {queue.verdict for queue in found} == {"fine"} and {queue.since for queue in found} == {None}
        assert len(found) == len(queues.TABLE)

    def test_include_the_sandbox_bank_only_in_the_sandbox(self, settings: Settings) -> None:
        settings.SANDBOX = False
        assert len(queues.read_queues(clock.now())) == len(queues.TABLE) - 1

    @pytest.mark.rule("operator.page")
    def test_show_overdue_operations(self, unclear: Operation) -> None:
        assert queue("Operations to finish").since is None
        age(Operation.objects.filter(pk=unclear.pk), next_attempt_at=timedelta(seconds=90))
        found = queue("Operations to finish")
        assert (found.verdict, found.age) == ("late", "1 minute")

    def test_leave_out_an_operation_that_waits_for_another(self, unclear: Operation) -> None:
        Operation.objects.create(
            payment=unclear.payment,
            kind="void",
            state="planned",
            amount=1,
            actor="pump",
            created_at=clock.now(),
            next_attempt_at=clock.now() - LONG_AGO,
        )
        assert queue("Operations to finish").since is None

    def test_show_overdue_holds_and_unpaid_checkouts(self, held: Checkout, acme: Merchant) -> None:
        make_late(held)
        make_late(factories.checkout(acme))
        assert queue("Holds to release").since and queue("Unpaid checkouts to end").since
        assert queue("Holds to release").verdict == "fine"

    def test_leave_out_a_hold_that_waits_for_the_bank(self, unclear: Operation) -> None:
        make_late(Checkout.objects.get())
        assert queue("Holds to release").since is None

    @pytest.mark.parametrize(
        ("event_type", "title"),
        [(EventType.AUTHORIZED, "Urgent webhooks to send"), (EventType.VOIDED, "Other webhooks to send")],
    )
    def test_show_overdue_webhooks(self, event_type: EventType, title: str) -> None:
        due = emit(subscribe(), event_type)
        assert queue(title).verdict == "fine"
        age(Delivery.objects.filter(pk=due.pk), next_attempt_at=LONG_AGO)
        assert (queue(title).verdict, queue(title).age) == ("late", "1 day")
        Delivery.objects.update(next_attempt_at=clock.now() + LONG_AGO)
        assert queue(title).since is None

    def test_show_overdue_texts_and_mails(self, acme: Merchant, unpaid: Checkout) -> None:
        outbox.queue_once(acme, "refund_failed", key="1")
        SmsMessage.objects.create(
            kind="reminder",
            merchant=acme,
            phone="+447700900123",
            subject=unpaid.pk,
            checkout_uuid=unpaid.pk,
            created_at=clock.now() - LONG_AGO,
            due_at=clock.now() - LONG_AGO,
            ends_at=clock.now() + LONG_AGO,
        )
        assert queue("Texts to send").verdict == "late" and queue("Emails to send").verdict == "fine"

    def test_show_a_refund_that_does_not_settle(self, at: Callable[[str], Checkout]) -> None:
        at("refunding")
        assert queue("Refunds to settle").verdict == "fine"
        age(Operation.objects.filter(kind="refund"), created_at=LONG_AGO)
        assert queue("Refunds to settle").verdict == "late"


class TestRunningAPump:
    def test_runs_it_in_this_process_and_reports_the_duration(self, operator: Client, held: Checkout) -> None:
        make_late(held)
        answer = operator.post(RUN, {"pump": "checkout.tasks.expire_due"})
        assert (answer.status_code, answer["Location"]) == (303, PAGE)
        held.refresh_from_db()
        assert held.status == "voided"
        assert "Keep deadlines: the task ran for " in operator.get(PAGE).content.decode()
        kept = LogEntry.objects.get()
        assert kept.object_repr == "Keep deadlines" and kept.change_message.startswith(
            "Ran the task by hand in "
        )

    @pytest.mark.parametrize("pump", sorted(pumps.TITLES.keys() - {schedule.DELIVER_DUE}))
    def test_works_for_every_pump(self, operator: Client, pump: str) -> None:
        assert operator.post(RUN, {"pump": pump}).status_code == 303
        assert "the task ran for" in operator.get(PAGE).content.decode()

    def test_sends_webhooks_for_a_while_and_ends(
        self, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[float] = []
        monkeypatch.setattr(pumps, "send_webhooks", sent.append)
        operator.post(RUN, {"pump": schedule.DELIVER_DUE})
        assert sent == [pumps.SENDING_SECONDS]

    def test_that_fails_is_reported(self, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(name: str) -> float:
            raise ZeroDivisionError

        monkeypatch.setattr(pumps, "run", fail)
        operator.post(RUN, {"pump": "checkout.tasks.end_links"})
        assert "End pay links: the task failed with ZeroDivisionError." in operator.get(PAGE).content.decode()
        assert "failed" in LogEntry.objects.get().change_message

    @pytest.mark.rule("restore.closed")
    @pytest.mark.parametrize("pump", ["checkout.tasks.expire_due", schedule.DELIVER_DUE])
    def test_does_nothing_in_a_database_that_was_restored(
        self, operator: Client, held: Checkout, monkeypatch: pytest.MonkeyPatch, pump: str
    ) -> None:
        make_late(held)
        with nothing_moves(), monkeypatch.context() as restored:
            restored.setattr(restore_guard, "is_closed", lambda: True)
            operator.post(RUN, {"pump": pump})
        page = operator.get(PAGE).content.decode()
        assert "Not done: the database was restored." in page and "the task ran for" not in page
        assert not LogEntry.objects.exists()

    @pytest.mark.parametrize("pump", ["", "os.abort", "checkout.tasks.prove_all"])
    def test_refuses_an_unknown_pump(self, operator: Client, pump: str) -> None:
        assert operator.post(RUN, {"pump": pump}).status_code == 404
        assert not LogEntry.objects.exists()

    def test_requires_the_permission_and_a_post(
        self, operator: Client, client: Client, held: Checkout
    ) -> None:
        make_late(held)
        with nothing_moves():
            assert operator.get(RUN).status_code == 405
            person = User.objects.create_user("looker@example.com", is_staff=True)
            person.user_permissions.set(Permission.objects.filter(codename="view_operation"))
            strict = Client(enforce_csrf_checks=True)
            people.operate(strict, User.objects.get(email="operator@example.com"))
            assert strict.post(RUN, {"pump": "checkout.tasks.expire_due"}).status_code == 403
            people.operate(client, person)
            assert client.post(RUN, {"pump": "checkout.tasks.expire_due"}).status_code == 403


class TestSendingForAWhile:
    @pytest.mark.django_db(transaction=True)
    def test_stops_its_sender_afterwards(self) -> None:
        pumps.send_webhooks(0.1)
        assert "webhooks-sender" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "less than a second"),
        (0.4, "less than a second"),
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (7199, "1 hour"),
        (200_000, "2 days"),
    ],
)
def test_an_age_is_shown_in_its_largest_unit(seconds: float, words: str) -> None:
    assert ages.in_words(timedelta(seconds=seconds)) == words
