"""The expiry dates of the public hosts' certificates, as the proxy serves them.

Beat watches the certificates, because the service has only one beat process. Rules environment.doctor,
environment.alerts.
"""

import socket
import ssl
from urllib.parse import urlsplit

from django.conf import settings
from prometheus_client import Gauge

from config.lib.process import repeating

CONNECT_SECONDS = 5
EVERY_SECONDS = 30  # the pause between two readings
EXPIRES = Gauge(
    "checkout_certificate_expires_timestamp_seconds",
    "When the certificate of a public host expires; 0 if browsers refuse it, or if the host does not answer",
    ["host"],
)


def public_hosts() -> list[tuple[str, int]]:
    """Return the name and the port of each public host with https."""
    urls = {settings.BASE_URL, settings.CHECKOUT_PAGE_URL}
    parts = [urlsplit(url) for url in sorted(urls) if urlsplit(url).scheme == "https"]
    return list(dict.fromkeys((part.hostname or "", part.port or 443) for part in parts))


def read_expiry(host: str, port: int) -> float:
    """Return when the certificate of a host expires, in Unix seconds.

    Raises SSLCertVerificationError if browsers refuse the certificate, and another OSError if the host does
    not answer.
    """
    with (
        socket.create_connection((host, port), CONNECT_SECONDS) as plain,
        ssl.create_default_context().wrap_socket(plain, server_hostname=host) as secure,
    ):
        return float(ssl.cert_time_to_seconds(str((secure.getpeercert() or {})["notAfter"])))


def start_watching() -> None:
    """Start to read the certificates regularly in this process."""
    if settings.METRICS_TOKEN and public_hosts():
        repeating.start_repeating("certificates", measure, EVERY_SECONDS)


def measure() -> None:
    """Read the certificate of each public host, and set the metric."""
    for host, port in public_hosts():
        try:
            EXPIRES.labels(host).set(read_expiry(host, port))
        except OSError:
            EXPIRES.labels(host).set(0)
