"""Calls of the API go past the middlewares of pages, and lose nothing by it."""

from typing import Any

import pytest
from django.test import Client

from tests.conftest import Api

pytestmark = pytest.mark.django_db


class TestCalls:
    def test_say_how_long_their_answer_is(self, api: Api) -> None:
        answer = api.get("checkouts")
        assert int(answer["Content-Length"]) == len(answer.content) > 0

    def test_have_what_every_answer_has_and_nothing_of_pages(self, api: Api) -> None:
        answer = api.get("checkouts")
        assert {"X-Request-Id", "Permissions-Policy", "X-Content-Type-Options"} <= set(answer.headers)
        assert not {"Content-Security-Policy", "Vary"} & set(answer.headers)

    @pytest.mark.parametrize("path", ["/oauth/token", "/api/merchant/v1/checkouts"])
    def test_of_a_host_that_is_not_ours_are_refused(self, client: Client, path: str) -> None:
        assert client.post(path, HTTP_HOST="evil.example").status_code == 400


class TestPages:
    @pytest.mark.parametrize("path", ["/api/docs", "/login/", "/api/nothing"])
    def test_have_a_policy(self, client: Client, path: str) -> None:
        answer: Any = client.get(path)
        assert "Content-Security-Policy" in answer.headers
