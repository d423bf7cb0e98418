"""A delivery's page: its attempts, the planned attempts, and the request as a curl command."""

import re
import subprocess
from datetime import timedelta

import pytest
from django.test import Client

from checkout.models import Checkout
from config.lib import clock
from payments.models import Merchant
from portal.deliveries import log
from portal.models import Role
from tests import factories
from tests.portal import stage
from tests.portal.stage import saved
from webhooks import delivery, headers, outbox, signing, subscriptions
from webhooks.models import Attempt, Delivery, EventType, SigningSecret

pytestmark = pytest.mark.django_db


client = stage.client_of(Role.OWNER)


class TestLog:
    def test_opens_a_delivery_with_all_its_attempts(
        self, client: Client, acme: Merchant, held: Checkout
    ) -> None:
        saved(acme)
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        delivery = stage.deliver(acme, 500, "HTTP 500", "<b>upstream</b>")
        page = client.get(f"/portal/deliveries/{delivery.pk}").content.decode()
        assert (
            "<h1><code>checkout.authorized</code> <bdi>A-2</bdi></h1>" in page
            and "1. 500" in page
            and "2. next" in page
            and "4. last" in page
        )
        assert "&lt;b&gt;upstream" in page and "<b>upstream" not in page
        assert "We try 4 times within the two minutes" in page
        assert "whsec_" in page and SigningSecret.objects.get().secret not in page

    def test_shows_the_outcome_of_each_attempt(self, client: Client, acme: Merchant, held: Checkout) -> None:
        saved(acme)
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        stage.deliver(acme, 500)
        Delivery.objects.update(next_attempt_at=clock.now())
        delivery = stage.deliver(acme, 200)
        address = f"/portal/deliveries/{delivery.pk}"
        first = client.get(f"{address}?attempt=1").content.decode()
        assert "Attempt 1 failed. Your endpoint answered 500. Attempt 2 was delivered at " in first
        assert (
            first.count("Delivered</span>") == 1
            and "<h1><code>checkout.authorized</code> <bdi>A-2</bdi></h1>" in first
            and "We try" not in first
            and "Failed</span>" not in first
        )
        assert "<h2>Attempt 1: request</h2>" in first and re.search(r"<h2>Attempt 1:\s+answered in", first)
        assert "your server gets it a second time" in first
        second = client.get(address).content.decode()
        assert "Attempt 2 was delivered. Your endpoint answered 200." in second

    def test_says_why_the_endpoint_refused_the_event(
        self, client: Client, acme: Merchant, held: Checkout
    ) -> None:
        saved(acme)
        stage.hold(factories.checkout(acme, merchant_order_id="A-2"))
        refused = stage.deliver(acme, 400, "HTTP 400", "no_matching_signature")
        page = client.get(f"/portal/deliveries/{refused.pk}").content.decode()
        assert "Your endpoint answered 400: “no_matching_signature”." in page

    def test_shows_as_many_signatures_as_secrets_signed(self, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        once = stage.deliver(acme, 500)
        subscriptions.rotate(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        twice = stage.deliver(acme, 500)
        for sent, signatures, standard in ((once, "v1=…", "v1,…"), (twice, "v1=…,v1=…", "v1,… v1,…")):
            found = Delivery.objects.select_related("event", "subscription").get(pk=sent.pk)
            lines = dict(line.split(": ", 1) for line in log.delivery_details(acme, found).request_lines)
            assert lines["X-Service-Signature"].partition(",")[2] == signatures
            assert lines["webhook-signature"] == standard
            assert lines["webhook-id"] == str(found.event_id)
            assert lines["webhook-timestamp"] == lines["X-Service-Timestamp"]

    def test_shows_every_header_that_was_sent(self, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        sent = headers.signed_headers(claimed, b"{}")
        found = Delivery.objects.select_related("event", "subscription").get(pk=claimed.delivery_id)
        shown = [line.partition(":")[0] for line in log.delivery_details(acme, found).request_lines]
        assert shown == [name for name in sent if name != "traceparent"]

    def test_lists_every_planned_attempt(self, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        delivery = stage.deliver(acme, 500)
        shown = log.delivery_details(
            acme, Delivery.objects.select_related("event", "subscription").get(pk=delivery.pk)
        )
        assert [step.number for step in shown.steps] == list(range(1, 10))
        assert shown.steps[1].at == delivery.next_attempt_at
        days = (shown.steps[-1].at - shown.steps[0].at).total_seconds() / 86_400
        assert 2.7 < days < 3.3

    def test_stays_live_when_an_attempt_starts_while_it_reads(self, acme: Merchant) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        read_before = Delivery.objects.select_related("event", "subscription").get()
        delivery.claim(slots=1, general_slots=1)
        shown = log.delivery_details(acme, read_before)
        assert shown.sentence == "It is being sent right now." and shown.is_live
        assert [step.words for step in shown.steps] == ["under way"]

    def test_names_no_current_address_for_an_attempt_to_an_earlier_one(
        self, client: Client, acme: Merchant
    ) -> None:
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {}, at=clock.now())
        sent = stage.deliver(acme, 500)
        assert f"POST {stage.URL}" in client.get(f"/portal/deliveries/{sent.pk}").content.decode()
        Attempt.objects.update(started_at=clock.now() - timedelta(hours=1))
        assert (
            "POST your endpoint at the time\n" in client.get(f"/portal/deliveries/{sent.pk}").content.decode()
        )

    def test_shows_a_curl_command_that_a_receiver_accepts(
        self, client: Client, acme: Merchant, held: Checkout
    ) -> None:
        """`signing.verify`, which merchants copy, accepts the signature of the page's curl command."""
        saved(acme)
        outbox.emit(acme, EventType.VOIDED, {"reason": "it's over"}, at=clock.now())
        delivery = stage.deliver(acme, 500)
        shown = log.delivery_details(
            acme, Delivery.objects.select_related("event", "subscription").get(pk=delivery.pk)
        )
        secret = "whsec_" + "a" * 43 + "="
        script = shown.curl.replace("whsec_…", secret).split("curl -i")[0]
        script += '\nprintf "t=%s,v1=%s\\n%s" "$T" "$V1" "$BODY"'
        printed = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        header, body = printed.split(b"\n", 1)
        assert body == delivery.event.plain_body
        at = int(header.split(b",")[0][2:])
        assert signing.verify(header.decode(), body, [secret], at)["type"] == "checkout.voided"
