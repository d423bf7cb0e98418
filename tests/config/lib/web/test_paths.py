"""API calls and payers' pages have the required headers, and set no session cookie of the portal."""

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver

from checkout.models import Checkout
from config.lib.web.paths import PAYER_PREFIXES
from tests.config import addresses
from tests.conftest import Api

pytestmark = pytest.mark.django_db


class TestCalls:
    def test_have_a_content_length(self, api: Api) -> None:
        answer = api.get("checkouts")
        assert int(answer["Content-Length"]) == len(answer.content) > 0

    def test_have_the_common_headers_and_do_not_vary_by_cookie(self, api: Api) -> None:
        answer = api.get("checkouts")
        assert {"X-Request-Id", "Permissions-Policy", "X-Content-Type-Options"} <= set(answer.headers)
        assert "Vary" not in answer.headers

    @pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/api/merchant/v1/checkouts"])
    def test_to_an_unknown_host_are_refused(self, client: Client, path: str) -> None:
        assert client.post(path, HTTP_HOST="evil.example").status_code == 400


class TestPages:
    @pytest.mark.parametrize("path", ["/api/docs", "/login/", "/api/nothing"])
    def test_have_a_policy(self, client: Client, path: str) -> None:
        answer: Any = client.get(path)
        assert "Content-Security-Policy" in answer.headers


class TestPayersPages:
    @pytest.mark.rule("secret.csp")
    def test_have_the_common_headers_and_no_portal_cookie(self, unpaid: Checkout) -> None:
        answer: Any = Client().get(f"/pay?id={unpaid.pk}")
        assert {"Content-Security-Policy", "X-Frame-Options", "Content-Language"} <= set(answer.headers)
        assert settings.SESSION_COOKIE_NAME not in answer.cookies

    @pytest.mark.parametrize("path", ["/pay/phone?id={}", "/bank/card/{}"])
    def test_accept_no_form_from_another_site(self, unpaid: Checkout, path: str) -> None:
        client = Client(enforce_csrf_checks=True)
        assert client.post(path.format(unpaid.pk), {"phone": "07700 900123"}).status_code == 403

    def test_are_the_only_pages_under_their_path_prefixes(self) -> None:
        found = {
            route: str(view.callback.__module__)
            for route, view in addresses.below(get_resolver().url_patterns)
        }
        payers = {module for route, module in found.items() if f"/{route}".startswith(PAYER_PREFIXES)}
        assert payers and all(
            name.startswith(("hosted_page.", "payments.providers.sandbox.")) for name in payers
        )
