"""`manage.py doctor` checks the database, Redis and the mail server."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from pytest_django.fixtures import Settings

from config import startup_checks
from config.doctor import servers
from config.lib import clock
from tests.hosted_page.sms.senders.doubles import closed_port

pytestmark = [pytest.mark.django_db, pytest.mark.rule("environment.doctor")]


def sentences(check: Any) -> str:
    return "\n".join(finding.sentence for finding in check())


class Mailbox(socketserver.StreamRequestHandler):
    """A mail server that offers a login but refuses every attempt."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example ESMTP\r\n")
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b"EHLO":
                self.wfile.write(b"250-mail.example\r\n250 AUTH PLAIN\r\n")
            elif verb == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"535 5.7.8 wrong password\r\n" if verb == b"AUTH" else b"250 ok\r\n")


@contextmanager
def mail_server() -> Iterator[int]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


class TestDatabase:
    def test_that_is_right_has_no_finding(self) -> None:
        assert sentences(servers.database) == ""

    def test_that_does_not_answer_is_reported(self) -> None:
        def fail(*_: object) -> None:
            raise OperationalError("away")

        with connection.execute_wrapper(fail):
            assert "The database does not answer (OperationalError). Check DATABASE_URL" in sentences(
                servers.database
            )

    def test_with_missing_migrations_is_reported(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE app = 'portal' AND name = '0002_sql'")
        assert "1 migrations have not run. Run manage.py migrate." in sentences(servers.database)

    def test_that_fails_a_startup_check_is_reported(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.LOCAL = False
        monkeypatch.setattr(startup_checks, "problems_of_database", lambda: ["One.", "Two."])
        assert sentences(servers.database) == "One.\nTwo."

    def test_with_another_clock_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clock, "now", lambda: datetime.now(UTC) - timedelta(seconds=90))
        assert "clock differs from the database's by 90 s." in sentences(servers.database)


class TestRedis:
    def test_that_answers_has_no_finding(self) -> None:
        assert sentences(servers.redis) == ""

    def test_that_does_not_answer_is_reported(self, settings: Settings) -> None:
        settings.REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
        assert "Redis does not answer (ConnectionError). Check REDIS_URL" in sentences(servers.redis)


class TestMail:
    @pytest.fixture(autouse=True)
    def _by_smtp(self, settings: Settings) -> None:
        settings.LOCAL, settings.EMAIL_USE_TLS = False, False
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "127.0.0.1", "", ""

    def test_server_that_accepts_has_no_finding(self, settings: Settings) -> None:
        with mail_server() as settings.EMAIL_PORT:
            assert sentences(servers.mail) == ""

    def test_server_that_refuses_the_login_is_reported(self, settings: Settings) -> None:
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "checkout", "secret-word"
        with mail_server() as settings.EMAIL_PORT:
            found = sentences(servers.mail)
        assert "refuses the login. Check EMAIL_HOST_USER" in found and "secret-word" not in found

    def test_server_without_tls_is_reported(self, settings: Settings) -> None:
        settings.EMAIL_USE_TLS = True
        with mail_server() as settings.EMAIL_PORT:
            assert "(SMTPNotSupportedError). Check EMAIL_HOST, EMAIL_PORT and EMAIL_USE_TLS." in sentences(
                servers.mail
            )

    def test_server_that_does_not_answer_is_reported(self, settings: Settings) -> None:
        settings.EMAIL_PORT = closed_port()
        assert f"127.0.0.1:{settings.EMAIL_PORT} does not answer (ConnectionRefusedError)" in sentences(
            servers.mail
        )
