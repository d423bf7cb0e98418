import html
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.deliveries import log
from portal.models import AuditEntry, OutboundEmail, Role
from tests import factories
from tests.portal import stage
from webhooks import delivery, outbox, signing, subscriptions
from webhooks.models import Attempt, Delivery, Event, EventType, SigningSecret, Subscription

pytestmark = pytest.mark.django_db
SAVED = {"url": stage.URL, "event_types": ["checkout.authorized", "checkout.voided", "marketing.opted_in"]}


@pytest.fixture
def client(acme: Merchant) -> Client:
    return stage.browser(stage.person(acme, Role.OWNER))


def saved(acme: Merchant) -> Subscription:
    return subscriptions.register(acme, url=stage.URL, event_types=["*"]).subscription


class TestEndpoint:
    def test_shows_its_secret_once(self, client: Client) -> None:
        page = client.post("/portal/webhooks/endpoint", SAVED, follow=True)
        (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]+", page.content.decode())
        assert SigningSecret.objects.get().secret == secret
        assert "whsec_" not in client.get("/portal/webhooks").content.decode()
        again = client.post("/portal/webhooks/endpoint", SAVED, follow=True).content.decode()
        assert "whsec_" not in again, "no new secret"
        assert Subscription.objects.get().event_types == ["*"]

    def test_keeps_the_events_that_were_chosen(self, client: Client) -> None:
        client.post("/portal/webhooks/endpoint", SAVED | {"event_types": ["checkout.voided"]})
        assert Subscription.objects.get().event_types == ["checkout.voided"]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"url": ""}, "Write the address"),
            ({"url": "https://10.0.0.1/hooks"}, "field-error"),
            ({"url": "ftp://shop.example/hooks"}, "field-error"),
            ({"url": "https://" + "x" * 3000}, "Write the address"),
            ({"event_types": []}, "Choose at least one event"),
            ({"event_types": ["everything"]}, "Choose at least one event"),
        ],
    )
    def test_refuses_and_keeps_what_was_typed(
        self, client: Client, changes: dict[str, Any], words: str
    ) -> None:
        page = client.post("/portal/webhooks/endpoint", SAVED | changes)
        assert page.status_code == 422 and words in page.content.decode()
        assert not Subscription.objects.exists() and not AuditEntry.objects.exists()

    def test_change_is_audited_and_mailed(self, client: Client) -> None:
        client.post("/portal/webhooks/endpoint", SAVED)
        assert AuditEntry.objects.get().action == "subscription_saved"
        assert OutboundEmail.objects.get().kind == "sensitive_change"

    def test_is_removed(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        client.post("/portal/webhooks/end")
        assert Subscription.objects.get().ended_at


class TestHealth:
    def test_stands_beside_the_endpoint(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        for http_status, error in ((200, None), (503, "HTTP 503")):
            outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
            (claimed,) = delivery.claim(slots=1, general_slots=1)
            lease = (claimed.delivery_id, claimed.lease_token)
            delivery.record([delivery.Result(*lease, http_status, error, 340)])
        page = client.get("/portal/webhooks").content.decode()
        for words in ("50.0 %", "of 2", "0.34 s", "Last answered 2xx", "HTTP 503", "Failing since"):
            assert words in page, words


class TestSecret:
    def test_is_rotated_with_a_countdown_and_stopped(self, client: Client, acme: Merchant) -> None:
        subscription = saved(acme)
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        assert "Both secrets sign for" in page and "shown once" in page and "data-countdown" in page
        assert len(subscriptions.previous_sign_until(subscription)) == 1
        client.post("/portal/webhooks/revoke")
        assert subscriptions.previous_sign_until(subscription) == []
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        assert len(claimed.sealed_secrets) == 1
        assert "Both secrets sign" not in client.get("/portal/webhooks").content.decode()
        actions = AuditEntry.objects.values_list("action", flat=True)
        assert set(actions) == {"secret_rotated", "secret_revoked"}

    def test_is_rotated_again_until_three_sign(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        client.post("/portal/webhooks/rotate")
        client.get("/portal/webhooks")
        assert "Rotate the secret again" in client.get("/portal/webhooks").content.decode()
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        assert "Three secrets sign for" in page and "shown once" in page
        before = list(SigningSecret.objects.values("pk", "expires_at"))
        page = client.get("/portal/webhooks").content.decode()
        assert "Rotate the secret" not in page and "Stop the old secrets now" in page
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        assert "Three secrets sign already" in page
        assert list(SigningSecret.objects.values("pk", "expires_at")) == before
        client.post("/portal/webhooks/revoke")
        assert "secrets sign for" not in client.get("/portal/webhooks").content.decode()

    def test_stands_in_no_audit_and_no_mail(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        page = client.post("/portal/webhooks/rotate", follow=True).content.decode()
        (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]{10,}", page)
        rows = [*AuditEntry.objects.values(), *OutboundEmail.objects.values()]
        assert rows and secret not in str(rows)


class TestTestEvent:
    def test_shows_request_and_answer(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        sent = client.post("/portal/webhooks/test")
        address = sent["Location"].split("#")[0]
        waiting = client.get(address).content.decode()
        assert "Waiting for the answer" in waiting and "every 500ms" in waiting
        stage.deliver(acme, 500, "HTTP 500", "upstream unavailable")
        page = client.get(address).content.decode()
        assert "upstream unavailable" in page and "webhook.test" in page and "every 500ms" not in page
        part = client.get(address, headers={"HX-Request": "true", "HX-Target": "answer"}).content.decode()
        assert "upstream unavailable" in part and "<html" not in part

    def test_needs_an_endpoint(self, client: Client) -> None:
        assert "Save an endpoint first" in client.post("/portal/webhooks/test", follow=True).content.decode()
        assert not Event.objects.exists()


class TestLog:
    def test_without_an_endpoint_asks_for_one_and_then_offers_a_test_event(
        self, client: Client, acme: Merchant
    ) -> None:
        assert b"Add your endpoint" in client.get("/portal/deliveries").content
        saved(acme)
        page = client.get("/portal/deliveries")
        assert b"Send test event" in page.content and b"Add your endpoint" not in page.content

    def test_opens_a_delivery_with_all_its_attempts(
        self, client: Client, acme: Merchant, held: Checkout
    ) -> None:
        saved(acme)
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        delivery = stage.deliver(acme, 500, "HTTP 500", "<b>upstream</b>")
        page = client.get(f"/portal/deliveries/{delivery.pk}").content.decode()
        assert "1. 500" in page and "2. next" in page and "4. last" in page
        assert "&lt;b&gt;upstream" in page and "<b>upstream" not in page
        assert "We try 4 times within the two minutes" in page
        assert "whsec_" in page and SigningSecret.objects.get().secret not in page

    def test_plans_every_attempt_that_is_left(self, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        delivery = stage.deliver(acme, 500)
        shown = log.shown(acme, Delivery.objects.select_related("event", "subscription").get(pk=delivery.pk))
        assert [step.number for step in shown.steps] == list(range(1, 10))
        assert shown.steps[1].at == delivery.next_attempt_at
        days = (shown.steps[-1].at - shown.steps[0].at).total_seconds() / 86_400
        assert 2.7 < days < 3.3

    def test_goes_on_looking_when_an_attempt_begins_while_it_reads(self, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        read_before = Delivery.objects.select_related("event", "subscription").get()
        delivery.claim(slots=1, general_slots=1)
        shown = log.shown(acme, read_before)
        assert shown.sentence == "It is being sent right now." and shown.is_live
        assert [step.words for step in shown.steps] == ["under way"]

    def test_filters(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        stage.captured(acme, merchant_order_id="A-1")
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        stage.deliver(acme, 200)

        def orders(**typed: str) -> set[str]:
            page = client.get("/portal/deliveries", typed).content.decode()
            return set(re.findall(r"<bdi>(A-\d)</bdi>", page))

        event = Attempt.objects.get().delivery.event
        assert (
            orders() == orders(q="A-2") == orders(q=str(event.pk)) == orders(outcome="delivered") == {"A-2"}
        )
        assert orders(event_type="checkout.authorized") == {"A-2"}
        assert orders(q="A-1") == orders(outcome="failed") == orders(event_type="checkout.voided") == set()
        assert orders(until="2020-01-01T00:00") == set()

    def test_lists_what_is_parked_even_if_it_was_never_sent(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        stage.parked(acme)
        page = client.get("/portal/deliveries?outcome=parked").content.decode()
        assert "not sent" in page and "Send all parked since" in page

    def test_as_curl_is_what_a_receiver_accepts(self, client: Client, acme: Merchant, held: Checkout) -> None:
        """The command's own signature, made by the shell, is the one that the file for merchants verifies."""
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {"reason": "it's over"}, at=clock.now())
        delivery = stage.deliver(acme, 500)
        shown = log.shown(acme, Delivery.objects.select_related("event", "subscription").get(pk=delivery.pk))
        secret = "whsec_" + "a" * 43 + "="
        script = shown.curl.replace("whsec_…", secret).split("curl -i")[0]
        script += '\nprintf "t=%s,v1=%s\\n%s" "$T" "$V1" "$BODY"'
        printed = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        header, body = printed.split(b"\n", 1)
        assert body == delivery.event.plain_body
        at = int(header.split(b",")[0][2:])
        assert signing.verify(header.decode(), body, [secret], at)["type"] == "checkout.voided"


class TestPersonalData:
    @pytest.fixture
    def opted_in(self, acme: Merchant) -> Delivery:
        saved(acme)
        payload = {"customer": {"email": "lea@example.com"}}
        event = outbox.emit(acme, EventType.OPTED_IN, payload, at=clock.now())
        return event.deliveries.get()

    def test_is_masked_until_somebody_reveals_it(self, client: Client, opted_in: Delivery) -> None:
        address = f"/portal/deliveries/{opted_in.pk}"
        masked = client.get(address).content.decode()
        assert "lea@example.com" not in masked and "The body holds personal data" in masked
        assert "lea@example.com" in client.post(f"{address}/reveal").content.decode()
        assert AuditEntry.objects.get().action == "personal_data_revealed"
        assert "lea@example.com" not in str(AuditEntry.objects.values())
        assert "lea@example.com" not in client.get(address).content.decode(), "not for good"

    def test_is_not_offered_to_who_may_not(self, acme: Merchant, opted_in: Delivery) -> None:
        client = stage.browser(stage.person(acme, Role.DEVELOPER))
        assert "Show it" not in client.get(f"/portal/deliveries/{opted_in.pk}").content.decode()


class TestResend:
    def test_of_one(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        delivery = stage.parked(acme)
        done = client.post("/portal/deliveries/resend", {"which": "one", "delivery": str(delivery.pk)})
        delivery.refresh_from_db()
        assert delivery.status == "pending" and delivery.resent_by.startswith("user:")
        assert done["Location"].startswith(f"/portal/deliveries/{delivery.pk}")

    def test_of_a_hold_that_is_over_asks_first(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        captured = stage.captured(acme)
        delivery = Delivery.objects.get(event__checkout_uuid=captured.pk)
        form = {"which": "one", "delivery": str(delivery.pk)}
        asked = client.post("/portal/deliveries/resend", form)
        assert asked["Location"].endswith("?confirm=over")
        assert "although the hold is over" in client.get(asked["Location"]).content.decode()
        delivery.refresh_from_db()
        assert delivery.status == "superseded"
        client.post("/portal/deliveries/resend", form | {"confirm": "yes"})
        delivery.refresh_from_db()
        assert delivery.status == "pending"

    def test_of_what_was_delivered_asks_first(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        delivery = stage.deliver(acme, 200)
        form = {"which": "one", "delivery": str(delivery.pk)}
        asked = client.post("/portal/deliveries/resend", form)
        assert "Send it a second time" in client.get(asked["Location"]).content.decode()
        client.post("/portal/deliveries/resend", form | {"confirm": "yes"})
        delivery.refresh_from_db()
        assert delivery.status == "pending"
        refused = stage.deliver(acme, 500)
        assert refused.status == "delivered", "it goes back to where it stood"
        assert [attempt.is_delivered for attempt in refused.attempts.order_by("number")] == [True, False]

    def test_of_those_ticked_and_of_all_parked_since(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        one, two, three = (stage.parked(acme) for _ in range(3))
        ticked = {"which": "selected", "delivery": [str(one.pk), "nonsense"]}
        page = client.post("/portal/deliveries/resend", ticked, follow=True)
        assert "1 delivery is on its way" in page.content.decode()
        assert Delivery.objects.filter(status="parked").count() == 2
        since = two.ended_at.isoformat() if two.ended_at else ""
        client.post("/portal/deliveries/resend", {"which": "parked", "since": since})
        assert not Delivery.objects.filter(status="parked").exists() and three

    @pytest.mark.parametrize(
        "form",
        [{}, {"which": "parked"}, {"which": "parked", "since": "soon"}, {"which": "one", "delivery": "x"}],
    )
    def test_of_nothing_says_so(self, client: Client, acme: Merchant, form: dict[str, str]) -> None:
        saved(acme)
        stage.parked(acme)
        assert client.post("/portal/deliveries/resend", form, follow=True).status_code == 200
        assert Delivery.objects.get().status == "parked"

    def test_without_an_endpoint_says_so(self, client: Client, acme: Merchant) -> None:
        saved(acme)
        delivery = stage.parked(acme)
        subscriptions.end(acme)
        form = {"which": "one", "delivery": str(delivery.pk)}
        assert "no endpoint" in client.post("/portal/deliveries/resend", form, follow=True).content.decode()


def test_the_receivers_are_the_ones_of_the_readme(client: Client) -> None:
    """Those are run against the vectors by tests/webhooks/test_receivers.py."""
    readme = Path("README.md").read_text()
    for name in ("python", "node", "php"):
        code = Path(f"templates/portal/receivers/{name}.txt").read_text()
        assert len(code) > 1000 and code in readme
        page = client.get(f"/portal/webhooks?code={name}").content.decode()
        assert code.strip() in html.unescape(page) and "<?php" not in page
    assert b"def verify" in client.get("/portal/webhooks/signing.py").content
