"""The sandbox, instead of the sender, makes the first attempt of a delivery.

In these tests, the receiver is a real HTTP server.
"""

import time

import pytest

from payments.models import Merchant
from tests import factories
from tests.journeys import receiver
from tests.portal import stage
from webhooks import delivery, endpoint_tests, outbox
from webhooks.models import Attempt, Delivery

pytestmark = pytest.mark.django_db


def leased_delivery(merchant: Merchant) -> Delivery:
    """Return the delivery for a new hold. The sandbox has the lease of its first attempt."""
    with outbox.lease_first_attempts():
        stage.hold(factories.checkout(merchant))
    return Delivery.objects.get(merchant=merchant)


def outcome(delivery: Delivery) -> tuple[str, int | None, str | None]:
    attempt = Attempt.objects.get(delivery=delivery.pk)
    return Delivery.objects.get(pk=delivery.pk).status, attempt.http_status, attempt.error_message


@pytest.mark.rule("trial.first_attempt")
class TestFirstAttempts:
    def test_are_not_claimed_by_a_sender(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL)
        found = leased_delivery(acme)
        assert (found.attempt_count, found.status) == (1, "pending")
        assert not delivery.claim(slots=5, general_slots=5)
        stage.hold(factories.checkout(acme))
        assert len(delivery.claim(slots=5, general_slots=5)) == 1, "the block is over"

    def test_that_are_abandoned_are_closed_as_lost(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL)
        found = leased_delivery(acme)
        Delivery.objects.filter(pk=found.pk).update(lease_until=found.event.created_at)
        assert delivery.close_lost_attempts() == 1
        assert outcome(found) == ("pending", None, "worker_lost")

    def test_are_sent_and_signed_and_their_response_is_dropped(self, acme: Merchant) -> None:
        with receiver.listening() as endpoint:
            endpoint.secrets = [str(factories.subscribe(acme, url=endpoint.url).signing_secret)]
            found = leased_delivery(acme)
            endpoint_tests.drop_first_answer(found.pk)
            endpoint_tests.drop_first_answer(found.pk)
            (arrival,) = endpoint.arrivals
        assert arrival.attempt == 1 and arrival.event_id == str(found.event_id) and not endpoint.refused
        assert outcome(found) == ("pending", None, "the sandbox dropped the answer")

    def test_block_the_sandbox_only_for_a_limited_time(
        self, acme: Merchant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(endpoint_tests, "DROPPED_AFTER", 0.3)
        with receiver.listening() as endpoint:
            endpoint.secrets = [str(factories.subscribe(acme, url=endpoint.url).signing_secret)]
            endpoint.hang()
            found, begun = leased_delivery(acme), time.monotonic()
            endpoint_tests.drop_first_answer(found.pk)
            assert time.monotonic() - begun < 2
        assert outcome(found) == ("pending", None, "the sandbox dropped the answer")

    def test_can_be_sent_later_and_keep_their_response(self, acme: Merchant) -> None:
        with receiver.listening() as endpoint:
            endpoint.secrets = [str(factories.subscribe(acme, url=endpoint.url).signing_secret)]
            found = leased_delivery(acme)
            endpoint_tests.send_first_attempt(found.pk)
        assert outcome(found) == ("delivered", 200, None)

    def test_are_sent_only_to_allowed_addresses(self, acme: Merchant, settings: object) -> None:
        subscription = factories.subscribe(acme, url=stage.URL).subscription
        found = leased_delivery(acme)
        subscription.url = "https://10.0.0.1/hooks"
        subscription.save()
        endpoint_tests.send_first_attempt(found.pk)
        assert outcome(found) == ("pending", None, "address not allowed")

    def test_record_why_no_server_was_reached(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL)
        found = leased_delivery(acme)
        endpoint_tests.drop_first_answer(found.pk)
        assert outcome(found) == ("pending", None, "could not connect")
