"""The log lines about one order, parsed as JSON."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from config import version
from config.local import environment
from tests.journeys import polling
from tests.journeys.merchant import Merchant
from tests.journeys.service import ROOT
from tests.journeys.watched import proxied
from tests.journeys.watched.person import Person

pytestmark = [pytest.mark.journey, pytest.mark.long]
SANDBOX = {"ENVIRONMENT": "sandbox"}
ADDRESS = "api/merchant/v1/checkouts"
# Outside `local`, a merchant cannot subscribe a URL on this machine, so the test inserts the subscription
# into the database. The service then refuses to call the URL, but still logs the attempt.
SUBSCRIBE = """
from payments.models import Merchant
from webhooks import subscriptions
merchant = Merchant.objects.get(memberships__user__email="{}")
subscriptions.save_subscription(merchant, url="http://127.0.0.1:9/hooks", event_types=["*"], is_approved=True)
"""
Line = dict[str, Any]


class Order(NamedTuple):
    """An order that was created, captured, and refunded in the portal."""

    uuid: str
    merchant: Merchant
    folder: Path

    def lines(self, part: str) -> list[Line]:
        """Return the log lines of a process that are about the order. Fail if a line is not JSON."""
        text = (self.folder / f"{part}.log").read_text()
        return [line for line in map(json.loads, text.splitlines()) if line.get("checkout") == self.uuid]

    def line(self, part: str, **facts: Any) -> Line:
        """Wait for a log line about the order with these fields, and return the first one."""

        def first_match() -> Line | None:
            matching = (line for line in self.lines(part) if facts.items() <= line.items())
            return next(matching, None)

        return polling.until(first_match, within=20, what=f"a line of {part} with {facts}")


def gather_static_files(folder: Path) -> None:
    """Collect the static files as `make static` does, because pages outside `local` need them."""
    variables = {
        **os.environ,
        **environment.load_keys(folder),
        **SANDBOX,
        "BASE_URL": "https://localhost",
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }
    command = [sys.executable, "manage.py", "collectstatic", "--no-input", "--clear", "--verbosity", "0"]
    subprocess.run(command, env=variables, cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Order]:
    folder = tmp_path_factory.mktemp("logs")
    gather_static_files(folder)
    with proxied.running(folder, SANDBOX) as (_, service):
        merchant = service.new_merchant()
        service.command("shell", "--command", SUBSCRIBE.format(merchant.owner[0]))
        order = Order(merchant.held(), merchant, folder)
        part, facts = BY_OTHERS["delivery"]
        # Wait for the log line of the delivery, because a capture would supersede the delivery.
        order.line(part, **facts)
        merchant.capture(order.uuid)
        owner = Person(service.base_url, service.ca)
        owner.log_in(*merchant.owner)
        owner.set_up_app()
        owner.open(f"/portal/checkouts/{order.uuid}")
        owner.refund(order.uuid)
        merchant.awaited(order.uuid, "refunded", within=30)
        yield order


def request(method: str, route: str) -> Line:
    return {"event": "request", "method": method, "route": route}


# For each log line: the process that writes it, and the fields that identify it. Every line also has the
# merchant, the checkout, the version and the duration.
BY_CLIENT: dict[str, tuple[str, Line]] = {
    "create": ("web", request("POST", ADDRESS)),
    "capture": ("web", request("POST", f"{ADDRESS}/<api_uuid:checkout_uuid>/capture")),
    "call of the provider": ("web", {"event": "provider", "kind": "capture"}),
}
BY_OTHERS: dict[str, tuple[str, Line]] = {
    "delivery": ("worker", {"event": "delivery", "type": "checkout.authorized", "attempt": 1}),
    "refund at the provider": ("worker", {"event": "provider", "kind": "refund", "asked": "call"}),
    "order in the portal": ("web", request("GET", "portal/checkouts/<uuid:checkout_uuid>")),
    "refund in the portal": ("web", request("POST", "portal/checkouts/<uuid:checkout_uuid>/refund")),
}


@pytest.mark.rule("environment.logs")
@pytest.mark.parametrize("what", BY_CLIENT | BY_OTHERS)
def test_each_line_says_whose_order_it_is_about_and_how_long_it_took(order: Order, what: str) -> None:
    part, facts = (BY_CLIENT | BY_OTHERS)[what]
    line = order.line(part, **facts)
    assert re.fullmatch(r"[0-9a-f-]{36}", line["merchant"]) and line["version"] == version.running_version()
    assert isinstance(line["ms"], int) and line["timestamp"].endswith("Z") and line["level"] == "info"
    if what in BY_CLIENT:
        assert re.fullmatch(r"[0-9a-f-]{36}", line["client"]) and line["request_id"].startswith("req_")


@pytest.mark.rule("environment.logs")
def test_all_lines_of_an_order_name_one_merchant(order: Order) -> None:
    named = {line["merchant"] for part in ("web", "worker") for line in order.lines(part)}
    assert len(named) == 1
