import re
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.core import mail
from django.db import connection
from django.db.models import F
from django.test import Client
from pytest_django.fixtures import Settings

from checkout import refunds
from checkout.models import Change, Checkout, Refund
from config.lib import clock
from payments.models import Dispute, Merchant
from portal.mail import outbox, watching
from portal.models import Membership, OutboundEmail, Role
from tests import factories
from tests.factories import CAUSE
from tests.outside import decide, dispute
from tests.portal import stage
from webhooks import subscriptions
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(acme: Merchant) -> Membership:
    factories.subscribe(acme, url=stage.URL, event_types=["*"])
    stage.person(acme, Role.DEVELOPER)
    return stage.person(acme, Role.OWNER, "lea@acme.example")


def look_and_send() -> list[Any]:
    mail.outbox.clear()
    watching.look(clock.now())
    outbox.send_due()
    return list(mail.outbox)


@pytest.mark.rule("mail.outbox")
class TestAboutALogin:
    @pytest.fixture
    def asked(self, owner: Membership) -> OutboundEmail:
        """The mail with a code that Lea has asked for."""
        answer = Client().post("/accounts/login/code/", {"email": owner.user.email})
        assert answer.status_code == 302 and mail.outbox == [], "no answer waits for the mail server"
        return OutboundEmail.objects.get()

    def test_is_encrypted_while_it_waits_and_deleted_once_sent(self, asked: OutboundEmail) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT row_to_json(email)::text FROM portal_outboundemail email")
            (kept,) = cursor.fetchone()
        assert outbox.send_due() == 1
        (sent,) = mail.outbox
        code = re.search(r"\b\d{8}\b", str(sent.body))
        assert sent.to == ["lea@acme.example"] and code and code[0] in (asked.text or "")
        assert code[0] not in kept and "lea@" not in kept
        asked.refresh_from_db()
        assert asked.text is None and asked.sent_at and outbox.send_due() == 0

    def test_is_not_sent_when_its_code_has_ended(self, asked: OutboundEmail) -> None:
        assert asked.ends_at and asked.ends_at - asked.created_at > timedelta(minutes=9)
        OutboundEmail.objects.update(ends_at=clock.now())
        assert outbox.send_due() == 0 and mail.outbox == []
        asked.refresh_from_db()
        assert (asked.text, asked.sent_at, asked.next_try_at) == (None, None, None)

    def test_waits_half_a_minute_for_a_server_that_was_away(
        self, asked: OutboundEmail, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("django.core.mail.EmailMessage.send", Mock(side_effect=ConnectionRefusedError))
            assert outbox.send_due() == 0
        OutboundEmail.objects.update(next_try_at=F("next_try_at") - timedelta(seconds=31))
        assert outbox.send_due() == 1 and mail.outbox[0].to == ["lea@acme.example"]

    def test_of_a_server_that_hangs_holds_up_few_threads(self, asked: OutboundEmail) -> None:
        taken = [outbox.SERVER.enter() for _ in range(outbox.SERVER.slots)]
        try:
            assert all(taken) and outbox.send_due() == 0
        finally:
            for _ in taken:
                outbox.SERVER.leave()
        assert outbox.send_due() == 1


@pytest.mark.rule("portal.mails")
class TestWatching:
    def test_tells_of_an_endpoint_that_fails_for_an_hour_once(self, owner: Membership) -> None:
        subscription = subscriptions.read(owner.merchant)
        endpoint = Endpoint.objects.create(
            subscription=subscription, failing_since=clock.now(), last_error="HTTP 500"
        )
        assert look_and_send() == []
        endpoint.failing_since = clock.now() - timedelta(hours=1, seconds=1)
        endpoint.save()
        (sent,) = look_and_send()
        assert sent.to == ["lea@acme.example"] and "HTTP 500" in sent.body and "for an hour" in sent.subject
        assert look_and_send() == []

    def test_tells_of_parked_deliveries_once_a_day(self, owner: Membership) -> None:
        stage.parked(owner.merchant)
        (sent,) = look_and_send()
        assert "1 delivery is parked" in sent.body and "/portal/deliveries?outcome=parked" in sent.body
        stage.parked(owner.merchant)
        assert look_and_send() == []
        OutboundEmail.objects.update(key="yesterday")
        (sent,) = look_and_send()
        assert "2 deliveries are parked" in sent.body

    @pytest.mark.parametrize(
        ("reason", "says", "helps"),
        [
            (
                "card_closed",
                "The card’s account is closed.",
                "Pay the customer another way, or write to",
            ),
            ("insufficient_balance", "Insufficient balance.", "Try again"),
            ("refused", "", "Try again"),
            (None, "", "Try again"),
        ],
    )
    def test_tells_of_a_failed_refund_and_what_helps(
        self, owner: Membership, captured: Checkout, reason: str | None, says: str, helps: str
    ) -> None:
        refunds.accept(owner.merchant, captured.pk, ref="r-1", cause=CAUSE)
        Refund.objects.update(status="failed", failure_reason=reason)
        Checkout.objects.filter(pk=captured.pk).update(status="captured")
        Change.objects.create(
            checkout=captured, origin="refunding", to="captured", actor="pump", created_at=clock.now()
        )
        (sent,) = look_and_send()
        assert "£90.00" in sent.body and str(captured.pk) in sent.body
        assert says in sent.body and helps in sent.body
        assert (
            ("Try again" in sent.body)
            == (helps == "Try again")
            != ("with r-1. Sending it again" in sent.body)
        )
        assert look_and_send() == []

    def test_tells_of_lost_holds_once_a_day(self, owner: Membership, at: Any) -> None:
        at("lapsed")
        (sent,) = look_and_send()
        assert "1 hold lapsed" in sent.body
        assert look_and_send() == []

    @pytest.mark.rule("dispute.told")
    @pytest.mark.usefixtures("posted")
    def test_tells_of_a_dispute_and_what_to_do_until_when(
        self, owner: Membership, captured: Checkout, settings: Settings
    ) -> None:
        settings.SUPPORT_EMAIL = "help@checkout.example"
        found = dispute(captured.payment)
        Dispute.objects.update(respond_by=datetime(2026, 12, 4, 18, tzinfo=UTC))
        (sent,) = look_and_send()
        assert sent.to == ["lea@acme.example"] and sent.subject.endswith("a customer disputes £90.00")
        assert "Send your evidence to help@checkout.example before 4 Dec" in sent.body
        assert captured.merchant_order_id in sent.body and f"/portal/checkouts/{captured.pk}" in sent.body
        assert look_and_send() == []
        decide(found, is_won=False)
        (sent,) = look_and_send()
        assert sent.subject.endswith("the dispute over £90.00 is lost") and "nothing to refund" in sent.body
        assert look_and_send() == []

    @pytest.mark.rule("dispute.told")
    @pytest.mark.usefixtures("posted")
    def test_tells_of_a_dispute_that_is_won(self, owner: Membership, captured: Checkout) -> None:
        found = dispute(captured.payment)
        watching.look(clock.now())
        decide(found, is_won=True)
        (sent,) = look_and_send()
        assert sent.subject.endswith("is won") and "given the money back to you" in sent.body

    def test_keeps_still_when_all_is_well(self, owner: Membership, captured: Checkout) -> None:
        assert look_and_send() == []


class TestSending:
    def test_is_tried_again_when_the_mail_server_is_away(
        self, owner: Membership, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stage.parked(owner.merchant)
        watching.look(clock.now())

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

    def test_is_given_up_in_the_end(self, owner: Membership, monkeypatch: pytest.MonkeyPatch) -> None:
        stage.parked(owner.merchant)
        watching.look(clock.now())

        def away(*_: object) -> int:
            raise ConnectionRefusedError

        monkeypatch.setattr("django.core.mail.EmailMessage.send", away)
        for _ in range(outbox.MAX_TRIES):
            OutboundEmail.objects.update(next_try_at=clock.now())
            outbox.send_due()
        assert OutboundEmail.objects.get().next_try_at is None and OutboundEmail.objects.get().sent_at is None

    def test_says_who_changed_what_from_where(self, owner: Membership) -> None:
        client: Client = stage.browser(owner)
        client.post("/portal/webhooks/rotate", REMOTE_ADDR="203.0.113.7")
        outbox.send_due()
        (sent,) = mail.outbox
        assert sent.subject == "TEST · Acme Tickets: rotated the signing secret"
        assert "lea@acme.example: Rotated the signing secret." in sent.body
        assert "203.0.113.7" in sent.body and "req_" in sent.body and "whsec_" not in sent.body

    def test_of_nothing_left_to_tell_is_dropped(self, owner: Membership) -> None:
        delivery = stage.parked(owner.merchant)
        watching.look(clock.now())
        delivery.status, delivery.next_attempt_at, delivery.ended_at = "pending", clock.now(), None
        delivery.save()
        assert outbox.send_due() == 0 and mail.outbox == []
        assert OutboundEmail.objects.get().next_try_at is None

    def test_header_cannot_be_broken_by_a_name(self, owner: Membership) -> None:
        owner.merchant.name = "Acme\nBcc: all@example.com"
        owner.merchant.save()
        stage.parked(owner.merchant)
        (sent,) = look_and_send()
        assert "\n" not in sent.subject
