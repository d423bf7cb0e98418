"""The responses to probes, which are sent to the IP address of a process over plain HTTP."""

from typing import NoReturn

import pytest
from django.db import OperationalError, connection
from django.test import Client
from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe(settings: Settings) -> Client:
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["checkout.example"], True
    return Client(headers={"host": "10.0.0.7:8000"})


def fail(*_: object) -> NoReturn:
    raise OperationalError("away")


@pytest.mark.parametrize(("path", "words"), [("/livez", "alive\n"), ("/readyz", "ready\n")])
def test_the_probes_answer_with_a_200(probe: Client, path: str, words: str) -> None:
    answer = probe.get(path)
    assert (answer.status_code, answer.content.decode()) == (200, words)


@pytest.mark.rule("environment.probes")
def test_is_alive_but_not_ready_without_a_database(probe: Client) -> None:
    with connection.execute_wrapper(fail):
        assert probe.get("/readyz").status_code == 503
        assert probe.get("/livez").status_code == 200


def test_only_the_probes_are_served_over_http(probe: Client) -> None:
    assert probe.get("/pay", headers={"host": "checkout.example"}).status_code == 301
    assert probe.get("/pay", secure=True).status_code == 400
