"""The tasks read the provider's books each night, and mail new discrepancies to the operators."""

import os
import smtplib
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from config import settings as written
from config.celery import app
from payments import operations, tasks
from payments import tasks as payment_tasks
from payments.discrepancies import kinds, reporting
from payments.models import Discrepancy, Merchant, Operation, Reconciled
from payments.provider import Outcome, Verdict
from tests import outside

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def operators(settings: Settings) -> list[str]:
    told = ["olga@operators.example", "omar@operators.example"]
    settings.OPERATORS = told
    return told


def a_minute_passes() -> None:
    Discrepancy.objects.filter(mailed_at__isnull=False).update(
        mailed_at=timezone.now() - timedelta(seconds=61)
    )


class TestTheMail:
    def test_names_the_problem_its_time_its_merchant_and_the_remedy(
        self, captured: Checkout, operators: list[str], settings: Settings
    ) -> None:
        operation = Operation.objects.get(kind="capture")
        reporting.report_operation(operation, kinds.MISSING_THERE, ours="secret words", theirs="")
        tasks.mail_discrepancies()
        (sent,) = mail.outbox
        left = Discrepancy.objects.get()
        assert (sent.to, sent.from_email) == (operators, settings.DEFAULT_FROM_EMAIL)
        assert sent.subject == "local: 1 discrepancy needs your attention"
        for told in (
            f"{kinds.MISSING_THERE.sentence}\n",
            "merchant: Acme Tickets\n",
            f"order:    {captured.merchant_order_id}\n",
            "amount:   £90.00\n",
            f"since:    {left.created_at:%Y-%m-%d %H:%M}",
            f"to do:    {kinds.MISSING_THERE.what_to_do}\n",
            f"remedy:   {kinds.MISSING_THERE.remedy}\n",
            "runbook:  docs/operate.md#provider-differences\n",
            f"see:      {settings.PORTAL_URL}/admin/payments/discrepancy/{left.pk}/change/\n",
        ):
            assert told in sent.body
        assert captured.lead is not None and captured.lead.phone
        for kept in ("secret words", captured.lead.phone, operation.payment.card_token, "4242"):
            assert kept not in sent.body

    def test_of_a_dispute_has_no_machine_words(self, captured: Checkout, posted: list[int]) -> None:
        outside.dispute(captured.payment, 2250)
        tasks.mail_discrepancies()
        body = mail.outbox[0].body
        assert body.startswith(f"{kinds.DISPUTED.sentence}\n  merchant: Acme Tickets\n")
        assert f"order:    {captured.merchant_order_id}\n  amount:   £22.50\n" in body
        for absent in ("kind:", "remedy:", "None", "disputed\n", str(Discrepancy.objects.get().subject)):
            assert absent not in body

    def test_leads_to_a_page_that_the_admin_has(self, acme: Merchant, admin_client: Client) -> None:
        reporting.report(kinds.MISSING_HERE, acme.pk)
        tasks.mail_discrepancies()
        address = mail.outbox[0].body.split("see:")[1].split()[0]
        assert b"missing_here" in admin_client.get(address).content

    def test_is_one_for_all_new_discrepancies(self, acme: Merchant) -> None:
        for kind in (kinds.FORGED_NOTIFICATION, kinds.MISSING_HERE, kinds.LEDGER_NOT_POSTED):
            reporting.report(kind, None, merchant=acme)
        tasks.mail_discrepancies()
        (sent,) = mail.outbox
        assert sent.subject == "local: 3 discrepancies need your attention"
        assert sent.body.count("see:") == 3 and "prove_ledger" in sent.body

    def test_lists_a_maximum_and_counts_the_rest(
        self, monkeypatch: pytest.MonkeyPatch, acme: Merchant
    ) -> None:
        monkeypatch.setattr(tasks, "LISTED", 2)
        for number in range(5):
            reporting.report(kinds.MISSING_HERE, UUID(int=number))
        tasks.mail_discrepancies()
        body = mail.outbox[0].body
        assert body.count("see:") == 2 and "And 3 more: " in body
        assert not Discrepancy.objects.filter(mailed_at=None).exists()

    def test_is_sent_after_a_day_in_doubt(self, held: Checkout) -> None:
        operation = Operation.objects.get()
        rows = Operation.objects.filter(pk=operation.pk)
        rows.update(
            state="unknown", kind="void", ended_at=None, created_at=timezone.now() - timedelta(hours=25)
        )
        operations.save_outcome(rows.get(), Outcome(Verdict.UNKNOWN), now=timezone.now(), lease=None)
        tasks.mail_discrepancies()
        assert kinds.IN_DOUBT_FOR_A_DAY.sentence in mail.outbox[0].body


class TestSending:
    @pytest.mark.rule("money.discrepancy")
    def test_reports_each_discrepancy_once(self, acme: Merchant) -> None:
        reporting.report(kinds.MISSING_HERE, acme.pk)
        tasks.mail_discrepancies()
        a_minute_passes()
        reporting.report(kinds.MISSING_HERE, acme.pk)
        tasks.mail_discrepancies()
        assert len(mail.outbox) == 1

    def test_waits_a_minute_with_the_next_one(self, acme: Merchant) -> None:
        reporting.report(kinds.MISSING_HERE, acme.pk)
        tasks.mail_discrepancies()
        Discrepancy.objects.update(mailed_at=timezone.now() + timedelta(seconds=1))
        reporting.report(kinds.MISSING_THERE, acme.pk)
        tasks.mail_discrepancies()
        assert len(mail.outbox) == 1
        a_minute_passes()
        tasks.mail_discrepancies()
        assert [sent.body.split("\n")[0] for sent in mail.outbox] == [
            kinds.MISSING_HERE.sentence,
            kinds.MISSING_THERE.sentence,
        ]

    @pytest.mark.rule("money.discrepancy")
    def test_leaves_out_what_has_closed_since_it_was_reported(self, acme: Merchant) -> None:
        for kind in (kinds.MISSING_HERE, kinds.MISSING_THERE):
            reporting.report(kind, acme.pk)
        reporting.close_resolved(kinds.MISSING_HERE, acme.pk, note="It came.", now=timezone.now())
        tasks.mail_discrepancies()
        (sent,) = mail.outbox
        assert sent.subject == "local: 1 discrepancy needs your attention"
        assert kinds.MISSING_THERE.sentence in sent.body and kinds.MISSING_HERE.sentence not in sent.body
        assert Discrepancy.objects.get(kind="missing_here").mailed_at is None

    def test_sends_no_mail_without_new_discrepancies(self) -> None:
        tasks.mail_discrepancies()
        assert mail.outbox == []

    def test_marks_no_discrepancy_as_mailed_without_recipients(
        self, acme: Merchant, settings: Settings
    ) -> None:
        settings.OPERATORS = []
        reporting.report(kinds.MISSING_HERE, acme.pk)
        tasks.mail_discrepancies()
        assert mail.outbox == [] and Discrepancy.objects.get().mailed_at is None

    @pytest.mark.parametrize("error", [smtplib.SMTPServerDisconnected, TimeoutError, ConnectionRefusedError])
    def test_retries_after_the_mail_server_was_unavailable(
        self, acme: Merchant, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
    ) -> None:
        def fail(message: EmailMessage) -> int:
            raise error

        reporting.report(kinds.MISSING_HERE, acme.pk)
        with monkeypatch.context() as out:
            out.setattr(EmailMessage, "send", fail)
            tasks.mail_discrepancies()
        assert Discrepancy.objects.get().mailed_at is None
        tasks.mail_discrepancies()
        assert len(mail.outbox) == 1 and Discrepancy.objects.get().mailed_at is not None

    @pytest.mark.django_db(transaction=True)
    def test_is_done_by_one_of_two_workers(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        began, goes_on = Event(), Event()
        send: Callable[[EmailMessage], int] = EmailMessage.send

        def slowly(message: EmailMessage) -> int:
            began.set()
            assert goes_on.wait(10)
            return send(message)

        def one_worker() -> None:
            try:
                tasks.mail_discrepancies()
            finally:
                connection.close()

        monkeypatch.setattr(EmailMessage, "send", slowly)
        reporting.report(kinds.MISSING_HERE, acme.pk)
        with ThreadPoolExecutor(1) as other:
            sending = other.submit(one_worker)
            assert began.wait(10)
            reporting.report(kinds.MISSING_THERE, acme.pk)
            tasks.mail_discrepancies()
            assert mail.outbox == []
            goes_on.set()
            sending.result(10)
        assert [sent.body.split("\n")[0] for sent in mail.outbox] == [kinds.MISSING_HERE.sentence]
        assert Discrepancy.objects.get(mailed_at=None).kind == "missing_there"

    def test_is_tried_every_minute(self) -> None:
        schedule = app.conf.beat_schedule["payments.tasks.mail_discrepancies"]["schedule"]
        assert str(schedule).startswith("<crontab: * * *")


class TestTheSettings:
    def test_of_local_mode_write_a_file(self, acme: Merchant, settings: Settings, tmp_path: Path) -> None:
        settings.EMAIL_BACKEND = written.EMAIL_BACKEND  # instead of pytest-django's mail backend
        settings.EMAIL_FILE_PATH = tmp_path / "mail"
        reporting.report(kinds.MISSING_HERE, acme.pk)
        tasks.mail_discrepancies()
        (file,) = settings.EMAIL_FILE_PATH.iterdir()
        assert kinds.MISSING_HERE.sentence in file.read_text()
        assert str(written.EMAIL_FILE_PATH).endswith("/.local/mail")

    def test_of_a_hosted_one_name_any_mail_server(self) -> None:
        given = {
            "ENVIRONMENT": "sandbox",
            "BASE_URL": "https://sandbox.example",
            "EMAIL_HOST": "smtp.example",
            "EMAIL_USE_TLS": "false",
            "OPERATORS": "olga@operators.example, omar@operators.example",
        }
        names = "EMAIL_BACKEND, s.EMAIL_HOST, s.EMAIL_PORT, s.EMAIL_USE_TLS, s.OPERATORS"
        said = subprocess.run(
            [sys.executable, "-c", f"import config.settings as s; print((s.{names}))"],
            env={**os.environ, **given},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == str(
            (
                "django.core.mail.backends.smtp.EmailBackend",
                "smtp.example",
                587,
                False,
                ["olga@operators.example", "omar@operators.example"],
            )
        )


@pytest.mark.rule("money.reconciled")
class TestTheTask:
    def test_reads_the_books_each_night(self) -> None:
        before = timezone.now()
        payment_tasks.reconcile()
        assert Reconciled.objects.get().until >= before
        assert str(app.conf.beat_schedule["payments.tasks.reconcile"]["schedule"]).startswith(
            "<crontab: 20 3 *"
        )
