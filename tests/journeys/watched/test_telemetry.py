"""The service's reports to Sentry and to an OpenTelemetry collector. A test server replaces both."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from config import version
from tests.journeys import deployment, polling
from tests.journeys.deployment import Deployment
from tests.journeys.merchant import Merchant
from tests.journeys.receiver import Arrival, Receiver
from tests.journeys.service import Service
from tests.journeys.watched import collector as collectors
from tests.journeys.watched.collector import Collector
from tests.journeys.watched.person import Person

pytestmark = [pytest.mark.journey, pytest.mark.long]
CARD = "4242424242424242"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, Service, Collector]]:
    folder = tmp_path_factory.mktemp("telemetry")
    with deployment.running(folder) as (whole, service), collectors.collecting() as (collector, variables):
        (folder / "fail").mkdir()
        whole.restart_all({**variables, "FAIL_POINTS": str(folder / "fail")})
        yield whole, service, collector


@pytest.fixture
def shop(world: tuple[Deployment, Service, Collector], receiver: Receiver) -> tuple[Merchant, Receiver]:
    """Return a merchant and its receiver, which captures an order when the order's webhook arrives.

    The receiver sends the capture with the trace id of the delivery.
    """
    merchant = world[1].new_merchant()
    receiver.secrets = [merchant.subscribe(receiver.url)]

    def answer(arrival: Arrival) -> int:
        if arrival.envelope["type"] == "checkout.authorized":
            uuid = arrival.envelope["data"]["checkout_uuid"]
            trace = arrival.headers["traceparent"]
            url = f"{merchant.base_url}/api/merchant/v1/checkouts/{uuid}/capture"
            requests.post(url, json={}, headers={**merchant.headers, "traceparent": trace}, timeout=20)
        return 200

    receiver.answer = answer
    return merchant, receiver


@pytest.mark.rule("environment.traces")
def test_everything_that_one_request_triggers_is_one_trace(
    world: tuple[Deployment, Service, Collector], shop: tuple[Merchant, Receiver]
) -> None:
    collector, (merchant, _) = world[2], shop
    uuid = merchant.create()
    merchant.pay(uuid)
    merchant.awaited(uuid, "captured", within=10)
    merchant.refund(uuid)
    merchant.awaited(uuid, "refunded", within=20)
    (paid,) = polling.until(
        lambda: collector.traces_with("provider authorize call"), within=10, what="the payment's trace"
    )
    expected = {
        "POST api/sandbox/v1/checkouts/<api_uuid:checkout_uuid>/pay",
        "provider authorize call",
        "delivery checkout.authorized",
        "POST api/merchant/v1/checkouts/<api_uuid:checkout_uuid>/capture",
        "provider capture call",
    }
    polling.until(lambda: expected <= collector.names_in(paid), within=10, what=f"{expected}")
    (refunded,) = polling.until(
        lambda: collector.traces_with("provider refund call"), within=10, what="the refund's trace"
    )
    later = {"POST api/merchant/v1/checkouts/<api_uuid:checkout_uuid>/refund", "provider refund look_up"}
    polling.until(lambda: later <= collector.names_in(refunded), within=10, what="what a worker did later")
    owner = Person(world[1].base_url, world[1].ca)
    owner.log_in(*merchant.owner)
    owner.open(f"/portal/checkouts/{uuid}")
    pages = {"POST api/merchant/v1/checkouts", "GET portal/checkouts/<uuid:checkout_uuid>"}
    polling.until(
        lambda: pages <= collector.names_about(uuid), within=10, what="requests that name the order"
    )
    assert {paid, refunded} <= collector.traces_of(uuid)
    token = merchant.headers["Authorization"].split()[1]
    assert not any(secret in str(collector.spans) for secret in (token, CARD, "Bearer", "+44", "whsec_"))


@pytest.mark.rule("environment.traces")
def test_a_release_and_its_webhook_belong_to_the_cancel(
    world: tuple[Deployment, Service, Collector], shop: tuple[Merchant, Receiver]
) -> None:
    collector, (merchant, receiver) = world[2], shop
    receiver.answer = lambda arrival: 200
    merchant.cancel(merchant.held())
    (cancelled,) = polling.until(
        lambda: collector.traces_with("delivery checkout.voided"), within=10, what="the webhook's trace"
    )
    whole = {"POST api/merchant/v1/checkouts/<api_uuid:checkout_uuid>/cancel", "provider void call"}
    polling.until(lambda: whole <= collector.names_in(cancelled), within=10, what="one trace")


@pytest.mark.rule("environment.errors")
def test_errors_are_reported_without_secrets(
    world: tuple[Deployment, Service, Collector], tmp_path: Path
) -> None:
    whole, service, collector = world
    merchant, fail = service.new_merchant(), Path(whole.parts["web"].variables["FAIL_POINTS"])
    held = merchant.held()
    (fail / "before_call.capture").write_text("raise")
    answer = merchant.post(f"checkouts/{held}/capture", {})
    assert answer.status_code == 500
    refunded = merchant.captured()
    (fail / "before_call.refund").write_text("raise")
    merchant.refund(refunded)
    found = polling.until(
        lambda: found if b"row failed" in (found := b"\n".join(list(collector.errors))) else None,
        within=15,
        what="the worker's error",
    )
    assert b"Failed" in found and b"failpoint.py" in found and b"row failed" in found
    token = merchant.headers["Authorization"].split()[1]
    for secret in (token, CARD, "Bearer", "SECRET_KEY", merchant.owner[1]):
        assert secret.encode() not in found
    for line in filter(None, found.splitlines()):
        event = json.loads(line)
        if "exception" in event:
            assert (
                event["release"] == version.running_version()
                and "request" not in event
                and "user" not in event
            )
            frames = [
                frame for value in event["exception"]["values"] for frame in value["stacktrace"]["frames"]
            ]
            assert frames and not any("vars" in frame for frame in frames)
