"""The port on which a worker and beat answer probes."""

import socket
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from pytest_django.fixtures import Settings

from config import probes
from tests.journeys.service import free_ports


@pytest.fixture
def port(settings: Settings) -> Iterator[int]:
    number, _ = free_ports()
    settings.PROBE_HOST, settings.PROBE_PORT = "127.0.0.1", int(number)
    server = probes.serve()
    assert server is not None
    yield int(number)
    server.shutdown()
    server.server_close()


def ask(port: int, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.mark.rule("environment.probes")
@pytest.mark.django_db(transaction=True)
class TestPort:
    def test_answers_as_a_web_process_does(self, port: int) -> None:
        assert ask(port, "/livez") == (200, b"alive\n")
        assert ask(port, "/readyz") == (200, b"ready\n")
        assert ask(port, "/metrics")[0] == 404
        assert ask(port, "/pay")[0] == 404

    def test_answers_despite_silent_connections(self, port: int) -> None:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        assert ask(port, "/livez")[0] == 200
        for one in silent:
            one.close()


def test_an_occupied_port_disables_only_the_probes(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.PROBE_HOST, settings.PROBE_PORT = "127.0.0.1", taken.getsockname()[1]
        assert probes.serve() is None
    assert "no probes" in caplog.text


def test_no_port_is_opened_by_default(settings: Settings) -> None:
    settings.PROBE_PORT = 0
    assert probes.serve() is None
