"""The service's reports to its operator must not contain any secrets of an order.

The test uses many secrets in one order. It then searches for them in all spans, error reports and metrics,
and in the logs of each process and of the proxy.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_plus

import pytest
import requests

from tests.journeys import polling, receiver
from tests.journeys import service as services
from tests.journeys.deployment import Deployment
from tests.journeys.merchant import PATIENCE, Merchant
from tests.journeys.service import Service
from tests.journeys.watched import collector as collectors
from tests.journeys.watched import proxied
from tests.journeys.watched.collector import Collector
from tests.journeys.watched.person import Person

pytestmark = [pytest.mark.journey, pytest.mark.long]
LEAS, FINNS = "07700 900123", "07700 900456"
CARD, FINNS_CARD = "4242 4242 4242 4242", "5555 5555 5555 4444"
METRICS_TOKEN = "nobody-guesses-this-token"
# How many seconds to wait after the order. By then, everything about the order has been reported.
QUIET_SECONDS = 3.0


class World(NamedTuple):
    """The service behind its proxy, and all reports that the operator gets."""

    whole: Deployment
    service: Service
    collector: Collector
    folder: Path
    ports: tuple[str, ...]

    def fail_once(self, point: str) -> None:
        (self.folder / "fail" / point).write_text("raise")

    def reports(self) -> dict[str, str]:
        """Map each source of reports, such as a log file, to the text of its reports."""
        found = {
            str(log.relative_to(self.folder)): log.read_text(errors="replace")
            for log in self.folder.rglob("*.log")
        }
        for port in self.ports:
            answer = requests.get(
                f"http://127.0.0.1:{port}/metrics",
                headers={"Authorization": f"Bearer {METRICS_TOKEN}"},
                timeout=PATIENCE,
            )
            assert answer.status_code == 200
            found[f"metrics at {port}"] = answer.text
        found["errors"] = b"\n".join(self.collector.errors).decode(errors="replace")
        found["spans"] = "\n".join(self.collector.exports)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "fail").mkdir()
    probes = dict(zip(("worker", "beat"), services.free_ports(), strict=True))
    with collectors.collecting() as (collector, told_there):
        variables = {
            **told_there,
            "METRICS_TOKEN": METRICS_TOKEN,
            "METRICS_DIR": str(folder / "metrics"),
            "FAIL_POINTS": str(folder / "fail"),
        }
        of_part = {name: {"PROBE_PORT": port} for name, port in probes.items()}
        with proxied.running(folder, variables, **of_part) as (whole, service):
            yield World(whole, service, collector, folder, (whole.variables["PORT"], *probes.values()))


@pytest.fixture(scope="module")
def secrets(world: World) -> dict[str, str]:
    """Process an order from the first page to the refund, with an error in each step that can fail.

    Return the secrets that were used.
    """
    merchant = world.service.new_merchant()
    with receiver.listening() as shop:
        signing_secret = merchant.subscribe(shop.url)
        new_secret = merchant.rotate()["signing_secret"]
        shop.secrets = [signing_secret, new_secret]
        uuid = merchant.create()
        codes, link = _pay(world, merchant, uuid)
        _pay_share(world, link, codes)
        _refund(world, merchant, uuid)
        merchant.awaited(uuid, "refunded", within=30)
        shop.awaited("checkout.authorized", uuid)
    _mistake(world, merchant)
    time.sleep(QUIET_SECONDS)
    return {
        "bearer token": merchant.headers["Authorization"].split()[1],
        "client secret": merchant.credentials.client_secret,
        "pay link": link.rpartition("/")[2],
        "signing secret": signing_secret,
        "new signing secret": new_secret,
        "owner's password": merchant.owner[1],
        **{f"{name}'s code": code for name, code in codes.items()},
        "lead's number": LEAS,
        "mate's number": FINNS,
        "lead's card": CARD,
        "mate's card": FINNS_CARD,
    }


def _pay(world: World, merchant: Merchant, uuid: str) -> tuple[dict[str, str], str]:
    """Pay as the lead, and capture. Both requests fail at first. Return the lead's code and the mate's link."""
    lead = Person(world.service.base_url, world.service.ca)
    lead.open(f"/pay?id={uuid}")
    codes = {"lead": lead.sign_in(LEAS)}
    lead.send("/split", split="own", your_name="Lea", name="Finn", amount="20.00")
    world.fail_once("before_call.authorize")
    lead.give_card(CARD)
    assert lead.page.status_code == 500
    merchant.awaited(uuid, "authorized", within=30)
    world.fail_once("before_call.capture")
    assert merchant.post(f"checkouts/{uuid}/capture", {}).status_code == 500
    merchant.awaited(uuid, "captured", within=30)
    (link, *_) = re.findall(r"/pay/share/[\w-]{16,}", lead.open(f"/pay?id={uuid}"))
    return codes, link


def _pay_share(world: World, link: str, codes: dict[str, str]) -> None:
    """Pay as the mate. The request fails, so the error report contains the mate's link."""
    mate = Person(world.service.base_url, world.service.ca)
    mate.open(link)
    codes["mate"] = mate.sign_in(FINNS)
    world.fail_once("before_call.authorize")
    mate.give_card(FINNS_CARD)
    assert mate.page.status_code == 500 and link in mate.page.url


def _refund(world: World, merchant: Merchant, uuid: str) -> None:
    """Refund as the owner, in the portal. The worker's first attempt fails."""
    owner = Person(world.service.base_url, world.service.ca)
    owner.log_in(*merchant.owner)
    world.fail_once("before_call.refund")
    owner.refund(uuid)
    assert owner.page.status_code == 200


def _mistake(world: World, merchant: Merchant) -> None:
    """Send requests that have secrets in the wrong places, as a developer might do by mistake."""
    call = requests.Session()
    call.trust_env, call.verify = False, world.service.ca
    base, (email, password), (_, secret) = (
        world.service.base_url,
        merchant.owner,
        vars(merchant.credentials).values(),
    )
    call.get(
        f"{base}/api/merchant/v1/checkouts", headers={"Authorization": f"Bearer {secret}"}, timeout=PATIENCE
    )
    call.get(
        f"{base}/api/merchant/v1/checkouts?client_secret={secret}", headers=merchant.headers, timeout=PATIENCE
    )
    call.get(f"{base}/accounts/login/?login={email}&password={password}", timeout=PATIENCE)
    call.post(f"{base}/oauth/token", json={"grant_type": "x", "client_secret": secret}, timeout=PATIENCE)
    call.post(f"{base}/oauth/revoke", json={"token": secret, "client_secret": secret}, timeout=PATIENCE)


def _shapes(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret could appear, for example form-encoded or without spaces."""
    yield secret
    yield quote_plus(secret)
    if re.fullmatch(r"[\d ]+", secret):
        yield secret.replace(" ", "")
    if secret.startswith("07700"):
        yield f"44{secret[1:].replace(' ', '')}"


def _contains(secret: str, text: str) -> bool:
    """Return whether the text contains the secret. Digits within a longer number or id do not count."""
    return any(
        re.search(rf"(?<![\w.-]){re.escape(shape)}(?![\w-])" if shape.isdigit() else re.escape(shape), text)
        for shape in _shapes(secret)
    )


@pytest.mark.rule("secret.logs", "environment.errors", "environment.traces", "environment.metrics")
def test_no_secret_of_an_order_is_in_logs_traces_or_error_reports(
    world: World, secrets: dict[str, str]
) -> None:
    reports = world.reports()
    for text in ("errors", "spans", "access.log", "web.log", "worker.log"):
        assert reports[text], f"{text} tells something"
    leaks = [
        (name, place)
        for name, secret in secrets.items()
        for place, text in reports.items()
        if _contains(secret, text)
    ]
    assert leaks == []


@pytest.mark.rule("environment.errors")
def test_the_errors_of_the_order_are_still_reported(world: World, secrets: dict[str, str]) -> None:
    def are_reported() -> bool:
        return all(
            words in world.reports()["errors"]
            for words in ("before_call.authorize", "before_call.capture", "before_call.refund", "row failed")
        )

    polling.until(are_reported, within=15, what="each error")
    assert "pay/share/[secret]" in world.reports()["web.log"]
