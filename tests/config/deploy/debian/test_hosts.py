"""Types docs/scale.md on six machines, and cuts the power of each web and worker host during orders."""

import contextlib
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.config.deploy import pages
from tests.config.deploy.debian import machine
from tests.config.deploy.debian.machine import Machine
from tests.config.deploy.debian.orders import api_client, buying
from tests.journeys.polling import until

pytestmark = [pytest.mark.long, pytest.mark.journey]
install, scale = partial(pages.block, "install.md"), partial(pages.block, "scale.md")
ADDRESSES = {
    "data": "10.0.0.5",
    "balancer": "10.0.0.10",
    "web-1": "10.0.0.11",
    "web-2": "10.0.0.12",
    "worker-1": "10.0.0.21",
    "worker-2": "10.0.0.22",
}
# The Debian services that each machine runs. Every machine has the packages of all of them.
DEBIANS = {"data": ("postgresql", "redis-server"), "balancer": ("nginx",)}
PASSWORD = "0123456789abcdef"
# A managed PostgreSQL and a managed Redis. Both accept only TLS, with certificates from their own authority.
MANAGED = f"""
cd /etc/ssl && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=managed -keyout ca.key -out managed.crt \\
  -addext keyUsage=critical,keyCertSign,cRLSign
openssl req -newkey rsa:2048 -nodes -subj /CN=db.internal -keyout data.key -out data.csr
openssl x509 -req -in data.csr -CA managed.crt -CAkey ca.key -days 2 -out data.crt \\
  -extfile <(echo subjectAltName=DNS:db.internal,DNS:redis.internal)
chmod 644 data.key && install -o postgres -m 600 data.key /var/lib/postgresql/data.key
cat > /etc/postgresql/17/main/conf.d/managed.conf <<CONF
listen_addresses = '*'
max_connections = 300
ssl_cert_file = '/etc/ssl/data.crt'
ssl_key_file = '/var/lib/postgresql/data.key'
CONF
echo 'hostssl checkout checkout,checkout_owner 10.0.0.0/24 scram-sha-256' >> /etc/postgresql/17/main/pg_hba.conf
cat >> /etc/redis/redis.conf <<CONF
bind 0.0.0.0
port 0
tls-port 6379
tls-cert-file /etc/ssl/data.crt
tls-key-file /etc/ssl/data.key
tls-ca-cert-file /etc/ssl/managed.crt
tls-auth-clients no
requirepass {PASSWORD}
CONF
systemctl restart postgresql redis-server
"""
NAMES = "echo '10.0.0.5 db.internal redis.internal\n10.0.0.10 pay.example' >> /etc/hosts"


@pytest.fixture(scope="module")
def hosts(installed: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Machine]]:
    """Install the service on its machines, with the commands of docs/scale.md."""
    folder = tmp_path_factory.mktemp("machines")
    with contextlib.ExitStack() as stack:
        bridge = stack.enter_context(machine.bridge("checkout-hosts"))
        made = {name: stack.enter_context(machine.copied(installed, name, folder)) for name in ADDRESSES}
        for name, host in made.items():
            _keep_services(host, DEBIANS.get(name, ()))
            host.start(bridge, ADDRESSES[name])
            host.type(NAMES.replace("echo", "printf"))
        _install_data(made)
        for name in ("worker-1", "worker-2", "web-1", "web-2"):
            _install_host(made, name)
        _install_balancer(made["balancer"])
        yield made


def _keep_services(host: Machine, kept: tuple[str, ...]) -> None:
    wanted = host.root / "etc/systemd/system/multi-user.target.wants"
    for service in ("postgresql", "redis-server", "nginx"):
        if service not in kept:
            (wanted / f"{service}.service").unlink()


def _install_data(made: dict[str, Machine]) -> None:
    """Start the managed servers, and write the variable files with their addresses."""
    data = made["data"]
    data.type(MANAGED)
    variables = install("/etc/checkout.env").replace("ENVIRONMENT=production", "ENVIRONMENT=sandbox")
    addresses = dict(
        re.findall(r"^(DATABASE_URL|REDIS_URL|PROBE_HOST)=(.*)$", scale("sslmode=verify-full"), re.M)
    )
    addresses["DATABASE_URL"] = addresses["DATABASE_URL"].replace("<password>", "${SERVICE:?}")
    addresses["REDIS_URL"] = addresses["REDIS_URL"].replace("<password>", PASSWORD)
    for name, address in addresses.items():
        variables = re.sub(rf"^{name}=.*\n", "", variables, flags=re.M)
        variables = variables.replace("\nENV\n", f"\n{name}={address}\nENV\n", 1)
    owner = addresses["DATABASE_URL"].replace("checkout:${SERVICE:?}", "checkout_owner:${OWNER:?}")
    variables = re.sub(r"DATABASE_OWNER_URL=[^\"]*", f"DATABASE_OWNER_URL={owner}", variables)
    data.type(install("CREATE ROLE") + variables)


def _install_host(made: dict[str, Machine], name: str) -> None:
    host, data = made[name], made["data"]
    files = ["etc/checkout.env", *(["etc/checkout-owner.env"] if name == "worker-1" else [])]
    for file in files:
        (host.root / file).write_bytes((data.root / file).read_bytes())
        (host.root / file).chmod(0o600)
    authority = Path(host.root, "usr/local/share/ca-certificates/managed.crt")
    authority.write_bytes((data.root / "etc/ssl/managed.crt").read_bytes())
    host.type("update-ca-certificates")
    if name == "worker-1":
        host.type(scale("checkout-manage migrate").replace("checkout-manage doctor", ""))
        assert "PROBLEM" not in _without_mail(host.type("checkout-manage doctor || true"))
        host.type(scale("checkout-beat.service"))
    if name.startswith("worker"):
        host.type(scale("checkout-worker@.service"))
    else:
        host.type(scale("ADDRESS=").replace("10.0.0.11", ADDRESSES[name]))


def _without_mail(said: str) -> str:
    """Leave out the line about the mail server, because there is none here."""
    return "\n".join(line for line in said.splitlines() if not line.startswith("PROBLEM  mail"))


def _install_balancer(balancer: Machine) -> None:
    commands = install("envsubst").partition("mkdir -p")
    proxy = "\n".join(line for line in f"mkdir -p{commands[2]}".splitlines() if not _is_of_an_authority(line))
    servers = re.sub(r" server 10.0.0.13:8000;", "", scale("WEB_SERVERS=").strip())
    assert servers.count("server ") == 2
    balancer.type("cd /srv/checkout\n" + proxy.replace("WEB_SERVERS='server 127.0.0.1:8000;'", servers))
    alive = "curl -sk -o /dev/null -w '%{http_code}' https://pay.example/livez"
    until(lambda: balancer.type(alive) == "200", within=30, what="a service behind the balancer")


def _is_of_an_authority(line: str) -> bool:
    return "certbot" in line or "letsencrypt" in line


def test_no_order_fails_when_a_host_loses_its_power(hosts: dict[str, Machine]) -> None:
    client = api_client(hosts["worker-1"], "Acme")
    with buying(hosts["balancer"], client, "--repeat") as outcome:
        for name in ("web-1", "web-2", "worker-1", "worker-2"):
            time.sleep(5)
            hosts[name].cut_power()
            time.sleep(10)
            hosts[name].start("checkout-hosts", ADDRESSES[name])
        time.sleep(5)
    assert outcome["given_up"] == []
    assert len(outcome["captured"]) == len(set(outcome["captured"])) > 40
    orders = "SELECT count(*), count(*) FILTER (WHERE status = 'captured') FROM checkout_checkout"
    said = hosts["data"].type(f'runuser -u postgres -- psql -d checkout -qtAc "{orders}"')
    assert said.strip() == "{0}|{0}".format(len(outcome["captured"]))
    hosts["worker-1"].type("checkout-manage prove_ledger && checkout-manage reconcile")
