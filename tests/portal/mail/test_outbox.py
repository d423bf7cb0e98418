import re
import smtplib
from collections.abc import Callable
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core import mail
from django.db import connection
from django.db.models import F
from django.test import Client, override_settings

from config.lib import clock
from portal.mail import outbox, trouble_mails
from portal.models import Membership, OutboundEmail
from tests.portal import stage
from tests.portal.mail.conftest import look_and_send
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db


@pytest.mark.rule("mail.outbox")
class TestAboutALogin:
    @pytest.fixture
    def code_mail(self, owner: Membership) -> OutboundEmail:
        """Return the mail that contains the code that Lea has requested."""
        answer = Client().post("/accounts/login/code/", {"email": owner.user.email})
        assert answer.status_code == 302 and mail.outbox == [], "no answer waits for the mail server"
        return OutboundEmail.objects.get()

    def test_is_encrypted_while_it_waits_and_deleted_once_sent(self, code_mail: OutboundEmail) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT row_to_json(email)::text FROM portal_outboundemail email")
            (kept,) = cursor.fetchone()
        assert outbox.send_due() == 1
        (sent,) = mail.outbox
        code = re.search(r"\b\d{8}\b", str(sent.body))
        assert sent.to == ["lea@acme.example"] and code and code[0] in (code_mail.text or "")
        assert code[0] not in kept and "lea@" not in kept
        code_mail.refresh_from_db()
        assert code_mail.text is None and code_mail.sent_at and outbox.send_due() == 0

    def test_is_not_sent_when_its_code_has_ended(self, code_mail: OutboundEmail) -> None:
        assert code_mail.ends_at and code_mail.ends_at - code_mail.created_at > timedelta(minutes=9)
        OutboundEmail.objects.update(ends_at=clock.now())
        assert outbox.send_due() == 0 and mail.outbox == []
        code_mail.refresh_from_db()
        assert (code_mail.text, code_mail.sent_at, code_mail.next_try_at) == (None, None, None)

    def test_waits_half_a_minute_for_an_unavailable_server(
        self, code_mail: OutboundEmail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("django.core.mail.EmailMessage.send", Mock(side_effect=ConnectionRefusedError))
            assert outbox.send_due() == 0
        OutboundEmail.objects.update(next_try_at=F("next_try_at") - timedelta(seconds=31))
        assert outbox.send_due() == 1 and mail.outbox[0].to == ["lea@acme.example"]

    def test_of_a_server_that_hangs_holds_up_few_threads(self, code_mail: OutboundEmail) -> None:
        taken = [outbox.SERVER.enter() for _ in range(outbox.SERVER.slots)]
        try:
            assert all(taken) and outbox.send_due() == 0
        finally:
            for _ in taken:
                outbox.SERVER.leave()
        assert outbox.send_due() == 1


class TestSending:
    def test_is_retried_if_the_mail_server_is_unavailable(
        self, owner: Membership, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage.parked(owner.merchant)
        trouble_mails.queue_trouble_mails(clock.now())

        def away(*_: object) -> int:
            raise ConnectionRefusedError

        with monkeypatch.context() as patch:
            patch.setattr("django.core.mail.EmailMessage.send", away)
            assert outbox.send_due() == 0
        waiting = OutboundEmail.objects.get()
        assert waiting.sent_at is None and waiting.next_try_at and waiting.next_try_at > clock.now()
        assert outbox.send_due() == 0, "not before its time"
        OutboundEmail.objects.update(next_try_at=clock.now())
        assert outbox.send_due() == 1 and OutboundEmail.objects.get().sent_at

    def test_is_given_up_after_the_maximum_number_of_tries(
        self, owner: Membership, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage.parked(owner.merchant)
        trouble_mails.queue_trouble_mails(clock.now())

        def away(*_: object) -> int:
            raise ConnectionRefusedError

        monkeypatch.setattr("django.core.mail.EmailMessage.send", away)
        for _ in range(outbox.MAX_TRIES):
            OutboundEmail.objects.update(next_try_at=clock.now())
            outbox.send_due()
        dropped = OutboundEmail.objects.get()
        assert dropped.next_try_at is None and dropped.sent_at is None and dropped.dropped_at

    def test_is_dropped_at_once_if_the_mail_server_refuses_the_recipients_for_good(
        self, owner: Membership, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage.parked(owner.merchant)
        trouble_mails.queue_trouble_mails(clock.now())
        counts = {outcome: outbox.OUTCOMES.labels(outcome)._value.get() for outcome in ("failed", "dropped")}

        def refuse(code: int) -> Callable[..., int]:
            def send(*_: object) -> int:
                raise smtplib.SMTPRecipientsRefused({"lea@acme.example": (code, b"no")})

            return send

        monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse(450))
        outbox.send_due()
        assert OutboundEmail.objects.get().dropped_at is None
        OutboundEmail.objects.update(next_try_at=clock.now())
        monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse(550))
        outbox.send_due()
        assert OutboundEmail.objects.get().dropped_at and OutboundEmail.objects.get().next_try_at is None
        assert {
            outcome: outbox.OUTCOMES.labels(outcome)._value.get() - was for outcome, was in counts.items()
        } == {
            "failed": 1,
            "dropped": 1,
        }

    def test_names_the_person_the_change_and_the_address(self, owner: Membership) -> None:
        client: Client = stage.browser(owner)
        client.post("/portal/webhooks/rotate", REMOTE_ADDR="203.0.113.7")
        outbox.send_due()
        (sent,) = mail.outbox
        assert sent.subject == "TEST · Acme Tickets: signing secret rotated"
        assert "lea@acme.example rotated the signing secret." in sent.body
        assert "From: 203.0.113.7" in sent.body and "req_" in sent.body and "whsec_" not in sent.body
        assert f"Then send the request id to our support at {settings.SUPPORT_EMAIL}.\n" in sent.body

    def test_about_a_change_names_no_address_if_there_is_none(self, owner: Membership) -> None:
        with override_settings(SUPPORT_EMAIL=""):
            stage.browser(owner).post("/portal/webhooks/rotate")
            outbox.send_due()
        assert "Then send the request id to our support.\n" in mail.outbox[0].body

    def test_is_dropped_if_its_cause_is_resolved(self, owner: Membership) -> None:
        delivery = stage.parked(owner.merchant)
        trouble_mails.queue_trouble_mails(clock.now())
        delivery.status, delivery.next_attempt_at, delivery.ended_at = "pending", clock.now(), None
        delivery.save()
        assert outbox.send_due() == 0 and mail.outbox == []
        assert not OutboundEmail.objects.exists()

    @pytest.mark.rule("portal.mails")
    def test_that_was_dropped_does_not_block_a_later_mail_of_the_day(self, owner: Membership) -> None:
        delivery = stage.parked(owner.merchant)
        trouble_mails.queue_trouble_mails(clock.now())
        Delivery.objects.filter(pk=delivery.pk).update(closed_at=clock.now())
        assert outbox.send_due() == 0
        stage.parked(owner.merchant)
        (sent,) = look_and_send()
        assert "1 delivery is parked" in sent.body

    def test_header_cannot_be_broken_by_a_name(self, owner: Membership) -> None:
        owner.merchant.name = "Acme\nBcc: all@example.com"
        owner.merchant.save()
        stage.parked(owner.merchant)
        (sent,) = look_and_send()
        assert "\n" not in sent.subject
