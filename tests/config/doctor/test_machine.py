"""`manage.py doctor` checks this machine: disks, folders, certificates and values."""

import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from config.doctor import machine
from tests.hosted_page.sms.senders.doubles import closed_port
from tests.webhooks.receivers.receiving import certificate

pytestmark = pytest.mark.rule("environment.doctor")


def sentences(check: Any) -> str:
    return "\n".join(finding.sentence for finding in check())


@contextmanager
def https_server(context: ssl.SSLContext) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                plain, _ = listener.accept()
                context.wrap_socket(plain, server_side=True).close()
            except OSError:
                pass  # because the client refused the certificate

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


class TestCertificates:
    @pytest.fixture
    def trusted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pair.pem"))

    def served(self, settings: Settings, folder: Path, days: int) -> str:
        server, _ = certificate(folder, host="localhost", to_days=days)
        with https_server(server) as port:
            settings.BASE_URL = settings.CHECKOUT_PAGE_URL = f"https://localhost:{port}"
            return sentences(machine.certificates)

    @pytest.mark.usefixtures("trusted")
    def test_that_is_valid_for_long_has_no_finding(self, settings: Settings, tmp_path: Path) -> None:
        assert self.served(settings, tmp_path, 60) == ""

    @pytest.mark.usefixtures("trusted")
    def test_that_expires_soon_is_reported(self, settings: Settings, tmp_path: Path) -> None:
        assert "The certificate of localhost expires in 3 days." in self.served(settings, tmp_path, 3)

    def test_that_browsers_refuse_is_reported(self, settings: Settings, tmp_path: Path) -> None:
        assert "Browsers refuse the certificate of localhost: self-signed" in self.served(
            settings, tmp_path, 60
        )

    def test_host_that_does_not_answer_is_a_warning(self, settings: Settings) -> None:
        settings.BASE_URL = settings.CHECKOUT_PAGE_URL = f"https://127.0.0.1:{closed_port()}"
        (finding,) = machine.certificates()
        assert finding.is_warning and "does not answer from this machine" in finding.sentence


class TestFolders:
    def test_of_erasures_that_does_not_exist_is_reported(self, settings: Settings, tmp_path: Path) -> None:
        settings.ERASURES_FILE = str(tmp_path / "kept" / "erasures")
        assert f"The folder {tmp_path / 'kept'} does not exist." in sentences(machine.folders)
        (tmp_path / "kept").mkdir()
        assert sentences(machine.folders) == ""

    def test_without_static_files_is_reported(self, settings: Settings, tmp_path: Path) -> None:
        settings.STATIC_ROOT = tmp_path
        assert "The static files are missing. Run make static." in sentences(machine.folders)

    def test_on_a_full_disk_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert sentences(machine.disks) == "" or "MiB free" in sentences(machine.disks)
        full = shutil._ntuple_diskusage(2**30, 2**30 - 2**20, 2**20)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
        assert "has only 1 MiB free. Make space." in sentences(machine.disks)


def test_values_that_are_rarely_meant_are_warnings(settings: Settings) -> None:
    assert list(machine.hints()) == []
    settings.LOCAL, settings.TRUSTED_PROXY_COUNT, settings.OPERATORS = False, 0, []
    settings.METRICS_TOKEN, settings.DEFAULT_FROM_EMAIL = "", "checkout@localhost"
    findings = list(machine.hints())
    assert len(findings) == 4 and all(finding.is_warning for finding in findings)
    assert findings[0].sentence.startswith("TRUSTED_PROXY_COUNT is 0.")
