"""The metric for the time at which a public host's certificate expires."""

import time
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from pytest_django.fixtures import Settings

from config.monitoring import certificates
from tests.config.doctor.test_machine import https_server
from tests.hosted_page.sms.senders.doubles import closed_port
from tests.webhooks.receivers.receiving import certificate

pytestmark = pytest.mark.rule("environment.alerts")


def days_left() -> float:
    """Read the certificate of localhost, and return the number of days until its expiry according to the metric."""
    certificates.measure()
    labels = {"host": "localhost"}
    expires = REGISTRY.get_sample_value("checkout_certificate_expires_timestamp_seconds", labels)
    assert expires is not None
    return (expires - time.time()) / 86_400


def serve_and_read(settings: Settings, folder: Path, days: int) -> float:
    server, _ = certificate(folder, host="localhost", to_days=days)
    with https_server(server) as port:
        settings.BASE_URL = f"https://localhost:{port}"
        settings.CHECKOUT_PAGE_URL = f"{settings.BASE_URL}/pay"
        return days_left()


def test_is_the_end_of_the_certificate(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pair.pem"))
    assert 59.9 < serve_and_read(settings, tmp_path, 60) < 60
    assert 2.9 < serve_and_read(settings, tmp_path, 3) < 3


def test_is_in_the_past_if_browsers_refuse_the_certificate(settings: Settings, tmp_path: Path) -> None:
    assert serve_and_read(settings, tmp_path, 60) < -1000


def test_is_in_the_past_if_the_host_does_not_answer(settings: Settings) -> None:
    settings.BASE_URL = settings.CHECKOUT_PAGE_URL = f"https://localhost:{closed_port()}"
    assert days_left() < -1000


def test_is_absent_without_https(settings: Settings) -> None:
    settings.BASE_URL, settings.CHECKOUT_PAGE_URL = "http://localhost:8000", "http://localhost:8000/pay"
    assert certificates.public_hosts() == []
