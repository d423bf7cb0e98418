"""Runs the service as in sandbox or production, with databases, processes, nginx with TLS, and a double of Stripe.

It runs in a separate network, so its ports are always free.
"""

import base64
import contextlib
import datetime
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from config.local import children, engines, environment, run
from payments.providers.stripe import books
from tests.browser.deployed.network import HOSTS, SERVICE, SHOP, STRIPE, TWILIO
from tests.hosted_page.sms.senders import doubles, twilio_double
from tests.journeys import polling, service
from tests.journeys.service import ROOT, Service
from tests.payments.stripe_peer.remote import Remote

PORTS = {SERVICE: 8000, SHOP: 8001, **dict.fromkeys(STRIPE, 8002)}
NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/nginx-body;
  proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-other;
  uwsgi_temp_path {folder}/nginx-other;
  scgi_temp_path {folder}/nginx-other;
  ssl_certificate {folder}/public.pem;
  ssl_certificate_key {folder}/private.pem;
  map $host $port {{ {ports} }}
  server {{
    listen 443 ssl;
    location / {{
      proxy_pass http://127.0.0.1:$port;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto https;
    }}
  }}
}}
"""


# Starts a process: start(name, *command, **variables).
Start: TypeAlias = Callable[..., None]


@dataclass(frozen=True)
class Installation:
    """A running installation.

    Browsers must trust the TLS key with the hash `key_hash`. `carrier` records the SMS messages, which are
    sent only in production.
    """

    service: Service
    key_hash: str
    stripe: Remote
    carrier: doubles.Double

    @property
    def shop_url(self) -> str:
        return f"https://{SHOP}"


@contextlib.contextmanager
def running(folder: Path, kind: str) -> Iterator[Installation]:
    """Yield a running installation of the environment `kind`, which is "sandbox" or "production"."""
    with contextlib.ExitStack() as stack:
        key_hash = _write_certificate(folder)
        carrier = stack.enter_context(doubles.serving(twilio_double.act))
        ports = PORTS | {TWILIO: carrier.port}
        trusting = service.bare_environment(
            SSL_CERT_FILE=str(folder / "public.pem"),
            REQUESTS_CA_BUNDLE=str(folder / "public.pem"),
            PYTHONUNBUFFERED="1",
        )
        os.environ.update(trusting)

        def start(name: str, *command: str, **variables: str) -> None:
            stack.enter_context(_process(folder / f"{name}.log", command, trusting | variables))

        _start_nginx(folder, ports, start)
        start(
            "stripe",
            sys.executable,
            "-m",
            "tests.payments.stripe_peer.server",
            "8002",
            f"https://{STRIPE[2]}",
        )
        stripe = Remote("http://127.0.0.1:8002")
        polling.until(lambda: _answers(f"https://{STRIPE[1]}/endive/stripe.js"), within=30, what="Stripe")
        own = stack.enter_context(engines.running(folder, durable=False))
        variables = _variables(folder, kind, own, stripe) | {"PORT": "8000"}
        for command in (["migrate"], ["collectstatic", "--no-input", "--clear"]):
            _manage(command, trusting | variables)
        plan = run.plan(folder, "8000").services
        for part in ("web", "worker", "beat"):
            start(part, *plan[part], **variables)
        polling.until(lambda: _answers(f"https://{SERVICE}/readyz"), within=60, what="the service")
        helper = stack.enter_context(service.clerk(trusting | variables))
        whole = Service(f"https://{SERVICE}", f"https://{SHOP}", helper)
        _start_shop(whole, folder, variables["BASE_URL"], start)
        yield Installation(whole, key_hash, stripe, carrier)


def _variables(folder: Path, kind: str, own: engines.Engines, stripe: Remote) -> dict[str, str]:
    """Return the variables that an operator sets. In production, these include the variables for Stripe and Twilio."""
    variables = environment.load_keys(folder) | {
        "ENVIRONMENT": kind,
        "BASE_URL": f"https://{SERVICE}",
        "TRUSTED_PROXY_COUNT": "1",
        "DATABASE_URL": own.database_url,
        "REDIS_URL": own.redis_url,
    }
    if kind != "production":
        return variables
    url = f"https://{SERVICE}/provider/notifications"
    hears: dict[str, object] = {"url": url, "enabled_events": list(books.EVENTS)}  # as in README
    dashboard = stripe.client("sk_live_peer").v1
    endpoint = dashboard.webhook_endpoints.create(hears)  # type: ignore[arg-type]
    dashboard.payment_method_domains.create({"domain_name": SERVICE})
    return variables | {
        "ERASURES_FILE": str(folder / "erasures"),
        "PROVIDER": "payments.providers.stripe.adapter.StripeProvider",
        "STRIPE_SECRET_KEY": "sk_live_peer",
        "STRIPE_PUBLISHABLE_KEY": "pk_live_peer",
        "STRIPE_WEBHOOK_SECRET": str(endpoint.secret),
        "SMS_SENDER": "hosted_page.sms.senders.twilio.TwilioSender",
        "TWILIO_ACCOUNT_SID": twilio_double.ACCOUNT,
        "TWILIO_AUTH_TOKEN": twilio_double.KEY,
        "TWILIO_FROM": twilio_double.OWN,
    }


def _start_nginx(folder: Path, ports: Mapping[str, int], start: Start) -> None:
    shown = " ".join(f"{name} {port};" for name, port in ports.items())
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, ports=shown))
    start("nginx-output", "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"))


def _start_shop(whole: Service, folder: Path, base_url: str, start: Start) -> None:
    made = json.loads(
        whole.command("create_merchant", "Night Ferries", "--email", "lea@shop.example", "--json")
    )
    start(
        "shop",
        *(sys.executable, "-m", "config.local.shop"),
        BASE_URL=base_url,
        SHOP_PORT="8001",
        SHOP_URL=f"https://{SHOP}",
        SHOP_CLIENT_ID=made["client_id"],
        SHOP_CLIENT_SECRET=made["client_secret"],
        SHOP_STATE=str(folder / "shop.sqlite3"),
    )
    subscribed = folder / "shop.log"
    polling.until(lambda: b"subscribed to" in subscribed.read_bytes(), within=20, what="the shop")


@contextlib.contextmanager
def _process(log: Path, command: tuple[str, ...], variables: Mapping[str, str]) -> Iterator[None]:
    with open(log, "wb") as lines:
        process = subprocess.Popen(
            children.tie_to_parent(command, by=signal.SIGTERM),
            env=dict(variables),
            cwd=ROOT,
            stdout=lines,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
    finally:
        process.terminate()
        process.wait(20)


def _manage(command: list[str], variables: Mapping[str, str]) -> None:
    words = [sys.executable, "manage.py", *command, "--verbosity", "0"]
    subprocess.run(words, env=dict(variables), cwd=ROOT, check=True)


def _answers(url: str) -> bool:
    with contextlib.suppress(requests.RequestException):
        return requests.get(url, timeout=5).status_code == 200
    return False


def _write_certificate(folder: Path) -> str:
    """Write a certificate for all host names, and its key.

    Return the hash of the key in the form that browsers accept.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVICE)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, secret = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "private.pem").write_bytes(key.private_bytes(pem, secret, serialization.NoEncryption()))
    (folder / "public.pem").write_bytes(signed.public_bytes(pem))
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(hashlib.sha256(public).digest()).decode()
