import time

import pytest

from tests.journeys import polling
from tests.journeys import receiver as receivers
from tests.journeys.merchant import Merchant, seconds_until
from tests.journeys.receiver import Arrival, Receiver
from tests.journeys.service import Service
from webhooks import signing

pytestmark = pytest.mark.journey


def verifies(arrival: Arrival, secret: str) -> bool:
    """Return whether the delivery can be verified with this secret only."""
    try:
        signing.verify(arrival.headers["X-Service-Signature"], arrival.body, [secret], int(time.time()))
    except signing.VerificationError:
        return False
    return True


def retried(merchant: Merchant, checkout_uuid: str, event_id: str, *, attempts: int) -> None:
    """Wait until `attempts` delivery attempts for the event have ended. Then make the next attempt due."""
    latest = merchant.log_of(event_id, length=attempts)[0]
    assert latest["attempt_number"] == attempts
    merchant.advance(checkout_uuid, seconds_until(latest["next_attempt_at"]))


class TestDeadEndpoint:
    def test_is_tried_four_times_within_the_hold_and_then_parked(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        receiver.answer_with(503)
        checkout_uuid = subscribed.held()
        (first,) = receiver.awaited("checkout.authorized", checkout_uuid)
        for attempts in (1, 2, 3):
            retried(subscribed, checkout_uuid, first.event_id, attempts=attempts)
            receiver.awaited("checkout.authorized", checkout_uuid, count=attempts + 1)
        log = subscribed.log_of(first.event_id, length=4)
        assert [entry["attempt_number"] for entry in log] == [4, 3, 2, 1]
        assert {(entry["http_status"], entry["error_message"]) for entry in log} == {(503, "HTTP 503")}
        assert log[0]["next_attempt_at"] is None, "parked"
        arrivals = receiver.of("checkout.authorized", checkout_uuid)
        assert {(arrival.event_id, arrival.body) for arrival in arrivals} == {(first.event_id, first.body)}
        assert [arrival.attempt for arrival in arrivals] == [1, 2, 3, 4]
        assert subscribed.capture(checkout_uuid)["status"] == "captured", (
            "the money never waits for a webhook"
        )

    def test_gets_a_voided_event_nine_times_in_about_three_days(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        receiver.answer_with(400)
        checkout_uuid = subscribed.held()
        subscribed.cancel(checkout_uuid)
        (first,) = receiver.awaited("checkout.voided", checkout_uuid)
        subscribed.at_rest(checkout_uuid)
        waited = 0.0
        for attempts in range(1, 9):
            latest = subscribed.log_of(first.event_id, length=attempts)[0]
            gap = seconds_until(latest["next_attempt_at"])
            waited += gap
            subscribed.advance(checkout_uuid, gap)
            receiver.awaited("checkout.voided", checkout_uuid, count=attempts + 1)
        assert subscribed.log_of(first.event_id, length=9)[0]["next_attempt_at"] is None, "parked"
        assert {arrival.event_id for arrival in receiver.of("checkout.voided", checkout_uuid)} == {
            first.event_id
        }
        assert 0.85 * 72 < waited / 3600 < 1.15 * 72

    def test_that_recovers_gets_the_same_event(self, subscribed: Merchant, receiver: Receiver) -> None:
        receiver.answer_with(500)
        checkout_uuid = subscribed.held()
        (first,) = receiver.awaited("checkout.authorized", checkout_uuid)
        receiver.answer_with(200)
        retried(subscribed, checkout_uuid, first.event_id, attempts=1)
        _, second = receiver.awaited("checkout.authorized", checkout_uuid, count=2)
        assert (second.event_id, second.body) == (first.event_id, first.body)
        log = subscribed.log_of(first.event_id, length=2)
        assert [(entry["status"], entry["next_attempt_at"]) for entry in log] == [
            ("delivered", None),
            ("failed", None),
        ]

    def test_that_refuses_a_hold_event_does_not_get_it_again(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        receiver.answer_with(404)
        checkout_uuid = subscribed.held()
        (told,) = receiver.awaited("checkout.authorized", checkout_uuid)
        (entry,) = subscribed.log_of(told.event_id, length=1)
        assert (entry["http_status"], entry["next_attempt_at"]) == (404, None)

    def test_without_a_server_is_named_in_the_delivery_log(
        self, merchant: Merchant, receiver: Receiver
    ) -> None:
        merchant.subscribe("http://127.0.0.1:9/nobody")
        checkout_uuid = merchant.held()

        def failed() -> list[dict[str, object]]:
            found = merchant.call("GET", "merchant/v1/webhooks/deliveries?status=failed").json()["data"]
            return [entry for entry in found["deliveries"] if entry["checkout_uuid"] == checkout_uuid]

        (entry,) = polling.until(failed, within=5, what="the failed attempt in the log")
        assert entry["http_status"] is None
        assert entry["error_message"] and "127.0.0.1" not in str(entry["error_message"])
        assert entry["next_attempt_at"] is not None

    def test_that_hangs_delays_no_other_endpoint(self, service: Service, merchant: Merchant) -> None:
        with receivers.listening() as hanging, receivers.listening() as quick:
            hanging.secrets = [merchant.subscribe(hanging.url)]
            hanging.hang()
            rival = service.new_merchant("Rival")
            quick.secrets = [rival.subscribe(quick.url)]
            for _ in range(12):
                merchant.held()
            polling.until(lambda: len(hanging.arrivals) == 12, within=5, what="twelve requests that hang")
            checkout_uuid = rival.held()
            quick.awaited("checkout.authorized", checkout_uuid, within=3)

    @pytest.mark.long
    def test_that_hangs_times_out_after_fifteen_seconds(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        receiver.hang()
        checkout_uuid = subscribed.held()
        (told,) = receiver.awaited("checkout.authorized", checkout_uuid)
        (entry,) = subscribed.log_of(told.event_id, length=1, within=17)
        assert entry["http_status"] is None and "time" in entry["error_message"]
        assert 14_500 <= entry["duration_ms"] <= 16_000


class TestRotation:
    def test_both_secrets_sign_during_the_grace_newest_first(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        old = receiver.secrets[0]
        rotated = subscribed.rotate()
        new = rotated["signing_secret"]
        assert 7190 < seconds_until(rotated["previous_secret_expires_at"]) <= 7200
        receiver.secrets = [new]
        checkout_uuid = subscribed.held()
        (told,) = receiver.awaited("checkout.authorized", checkout_uuid)
        assert verifies(told, old) and verifies(told, new)
        at, *signatures = told.headers["X-Service-Signature"].split(",")
        assert signatures == [
            signing.sign([secret], told.body, int(at.removeprefix("t="))).split(",")[1]
            for secret in (new, old)
        ]

    def test_a_revoked_secret_signs_nothing_more(self, subscribed: Merchant, receiver: Receiver) -> None:
        old = receiver.secrets[0]
        rotated = subscribed.rotate(revoke_previous=True)
        assert rotated["previous_secret_expires_at"] is None
        receiver.secrets = [rotated["signing_secret"]]
        checkout_uuid = subscribed.held()
        (told,) = receiver.awaited("checkout.authorized", checkout_uuid)
        assert not verifies(told, old)
        assert told.headers["X-Service-Signature"].count("v1=") == 1

    def test_a_receiver_with_the_old_secret_refuses_until_it_knows_the_new_one(
        self, subscribed: Merchant, receiver: Receiver
    ) -> None:
        new = subscribed.rotate(revoke_previous=True)["signing_secret"]
        checkout_uuid = subscribed.held()
        polling.until(lambda: receiver.refused, within=5, what="a delivery signed with the new secret alone")
        assert receiver.refused == ["no_matching_signature"]
        receiver.refused.clear()
        receiver.secrets = [new]
        subscribed.cancel(checkout_uuid)
        receiver.awaited("checkout.voided", checkout_uuid)
