"""Types docs/install.md and docs/operate.md on an empty Debian 13: installation, order, upgrade, restore.

The test departs from the pages in two ways. The proxy keeps its first certificate, because there is no certificate
authority here. Commands that need the internet are typed before the machine starts, and they can reach only PyPI and
Debian's registry.
"""

import re
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.config.deploy import pages
from tests.config.deploy.debian import machine
from tests.config.deploy.debian.machine import Machine
from tests.config.deploy.debian.orders import api_client, buying
from tests.journeys.polling import until

pytestmark = [pytest.mark.long, pytest.mark.journey]
install, operate = partial(pages.block, "install.md"), partial(pages.block, "operate.md")
UNITS = ("checkout-web.service", "checkout-worker@1.service", "checkout-beat.service")
MOST_EXPOSED = 4.0
READY = "curl -s http://127.0.0.1:8000/readyz"
READY_FAILS = f"! {READY}"
# The proxy's first certificate is self-signed.
CURL = 'curl() { command curl --insecure "$@"; }\n'
FIRST = 'python3 -c \'import json; print(json.load(open("/tmp/created"))["data"]["checkout_uuid"])\''
UNTIL_REFUNDED = """
for _ in $(seq 100); do
  curl -fsS $API/api/merchant/v1/checkouts/$ID -H "Authorization: Bearer $TOKEN" > /tmp/read
  grep -q '"refunded"' /tmp/read && echo refunded && exit
  sleep 0.2
done
exit 1
"""


@pytest.fixture(scope="module")
def debian(installed: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Install the service with the commands of docs/install.md, and start it."""
    with machine.copied(installed, "debian", tmp_path_factory.mktemp("machine")) as made:
        made.start()
        install_database_and_proxy(made)
        start(made)
        yield made


def install_database_and_proxy(made: Machine) -> None:
    variables = install("/etc/checkout.env").replace("ENVIRONMENT=production", "ENVIRONMENT=sandbox")
    made.type("cd /srv/checkout\n" + install("CREATE ROLE") + variables)
    proxy = install("envsubst")
    authority = [line for line in proxy.splitlines() if "certbot" in line or "letsencrypt" in line]
    assert len(authority) == 3
    for line in authority:
        proxy = proxy.replace(f"{line}\n", "")
    made.type(f"cd /srv/checkout\necho 127.0.0.1 pay.example >> /etc/hosts\n{proxy}")


def start(made: Machine) -> None:
    """Start the processes as on the page. `doctor` reports only the mail server and the certificate as problems."""
    commands = install("systemctl enable").partition("checkout-manage doctor")[0]
    made.type(f"cd /srv/checkout\n{commands}")
    doctor = made.type("checkout-manage doctor || true")
    problems = re.findall(r"^PROBLEM +(.*?):", doctor, re.MULTILINE)
    assert set(problems) == {"mail", "certificates"}, doctor


def test_an_order_is_paid_captured_and_refunded(debian: Machine) -> None:
    """Run the commands of the page in one shell. The sandbox's `pay` call acts for the customer."""
    client = api_client(debian, "Acme")
    create = install("oauth/token").replace("client_id=…", f"client_id={client['client_id']}")
    create = create.replace("client_secret=…", f"client_secret={client['client_secret']}")
    capture_and_refund = install("/capture -H").replace("ID=…", f"ID=$({FIRST})")
    pay = f'curl -fsS $API/api/sandbox/v1/checkouts/$({FIRST})/pay -H "Authorization: Bearer $TOKEN" --json "{{}}"'
    said = debian.type(f"{CURL}{{\n{create}}} > /tmp/created\n{pay}\n{capture_and_refund}{UNTIL_REFUNDED}")
    assert said.count('"captured"') >= 1 and said.endswith("refunded\n"), said
    debian.type("checkout-manage prove_ledger && checkout-manage reconcile")


def test_the_units_allow_little(debian: Machine) -> None:
    for unit in UNITS:
        said = debian.type(f"systemd-analyze security --no-pager {unit} | tail -1")
        (exposure,) = re.findall(r"exposure level for \S+: ([\d.]+)", said)
        assert float(exposure) <= MOST_EXPOSED, said


@pytest.mark.rule("environment.restart")
def test_no_call_fails_during_an_upgrade(debian: Machine) -> None:
    upgrade = pages.block("upgrade.md", "make install static").partition("\n")[2]
    with buying(debian, api_client(debian, "Upgraded")) as outcome:
        debian.type(f"cd /srv/releases/1.1.0\n{upgrade}")
    assert outcome["failed"] == {} and outcome["given_up"] == []
    assert len(outcome["captured"]) > 10
    debian.type("checkout-manage prove_ledger")


def test_a_frozen_worker_is_started_again(debian: Machine) -> None:
    debian.type("kill -STOP $(systemctl show --property MainPID --value checkout-worker@1)")

    def has_restarted() -> bool:
        said = debian.type("systemctl show --property NRestarts,ActiveState checkout-worker@1")
        return "NRestarts=1" in said and "ActiveState=active" in said

    until(has_restarted, within=120, what="a frozen worker that systemd starts again")
    assert "watchdog" in debian.type("journalctl --unit checkout-worker@1 --no-pager")


def test_orders_are_made_through_pgbouncer(debian: Machine) -> None:
    commands = operate("apt install -y pgbouncer").partition("\n")[2].replace("checkout-manage doctor", "")
    debian.type(commands)
    with buying(debian, api_client(debian, "Pooled")) as outcome:
        time.sleep(5)
    assert outcome["captured"] and outcome["failed"] == {}
    connected = debian.type("ss -Htnp state established dport = :5432")
    assert "pgbouncer" in connected and "python" not in connected


@pytest.mark.rule("restore.closed")
def test_a_dump_is_restored_and_the_service_opens_after_the_repair(debian: Machine) -> None:
    stop, begin = re.findall(r"`(systemctl (?:stop|start) checkout-web[^`]*)`", pages.text("operate.md"))
    debian.type("install -d -o postgres /backup")
    backup = debian.type(operate("enable --now checkout-backup.timer")).split()[-1]
    with buying(debian, api_client(debian, "Lost")) as lost:
        time.sleep(5)
    assert lost["captured"]
    debian.type(f"{stop} pgbouncer")
    debian.type(READY_FAILS)
    debian.type(operate("pg_restore").replace("<name>.dump", backup))
    debian.type(
        f"systemctl start pgbouncer\ncheckout-manage migrate --verbosity 0\nsystemctl restart pgbouncer\n{begin}"
    )
    until(lambda: "closed" in debian.type(f"{READY} || true"), within=30, what="a closed service")
    assert "The service is open." in debian.type("checkout-manage reconcile --repair")
    until(lambda: debian.type(f"{READY} || true") == "ready\n", within=30, what="an open service")
    debian.type("checkout-manage prove_ledger")
