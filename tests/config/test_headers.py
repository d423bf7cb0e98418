"""Response headers forbid caching and access to devices, and keep secret addresses out of the referrer.

Forms on pages that send no referrer still work.
"""

import re
from collections.abc import Callable

import pytest
from django.test import Client

from checkout.models import Checkout
from payments import provider
from tests.conftest import Api

pytestmark = pytest.mark.django_db
# The random tokens here contain no digit, like one in forty real tokens. Only the path shows that they are tokens.
SECRETS = (
    "/pay/share/kXcvWq_e-ZtRtmLbgAyfHw",
    "/pay/share/kXcvWq_e-ZtRtmLbgAyfHw/qr.svg",
    "/pay/g/kXcvWq_e-ZtRtmLbgAyfHw",
    "/pay/g/kXcvWq_e-ZtRtmLbgAyfHw/qr",
    "/pay/offers/eyJhIjoxfQ:atYbZx:kXcvWq_d",
    "/join/kXcvWq_e-ZtRtmLbgAyfHw",
    "/accounts/password/reset/key/3f-set-password/",
    "/bank/card/0193c0de-1111-7000-8000-00000000beef",
    "/bank/challenge/0193c0de-1111-7000-8000-00000000beef",
)
OTHERS = (
    "/pay?id=x",
    "/portal",
    "/admin/",
    "/api/docs",
    "/api/nothing",
    "/livez",
    "/readyz",
    "/nothing",
    "/static/x",
)


class TestCaches:
    @pytest.mark.parametrize("address", [*SECRETS, *OTHERS])
    def test_store_only_the_documentation_page(self, client: Client, address: str) -> None:
        said = client.get(address)["Cache-Control"]
        assert said == "public, max-age=300" if address == "/api/docs" else "no-store" in said

    def test_store_no_redirect_and_no_refusal(self, client: Client, unpaid: Checkout) -> None:
        """Responses are not cached even if the view or middleware that sends them sets no caching header."""
        answers = (
            client.get(f"/pay/card?id={unpaid.pk}"),
            client.get("/accounts/password/set/"),
            client.post("/pay/phone", b"x" * 100_000, content_type="text/plain"),
            client.put(f"/pay?id={unpaid.pk}"),
            client.post(f"/pay/phone?id={unpaid.pk}", HTTP_HOST="evil.example"),
        )
        assert [answer.status_code for answer in answers] == [303, 302, 413, 405, 400]
        assert all("no-store" in answer["Cache-Control"] for answer in answers)


class TestPermissions:
    @pytest.mark.parametrize(
        "address", [*SECRETS, *(one for one in OTHERS if not one.startswith("/static/"))]
    )
    def test_deny_devices_on_every_page(self, client: Client, address: str) -> None:
        given = client.get(address)["Permissions-Policy"]
        for feature in ("camera", "microphone", "geolocation", "usb", "display-capture"):
            assert f"{feature}=()" in given
        assert given.endswith("payment=(self)")

    def test_are_left_out_of_static_files(self, client: Client) -> None:
        answer = client.get("/static/js/frame.js")
        assert answer.status_code == 200 and "Permissions-Policy" not in answer.headers
        assert "Content-Security-Policy" in answer.headers

    def test_are_set_on_api_responses(self, api: Api, unpaid: Checkout) -> None:
        assert "camera=()" in api.get(f"checkouts/{unpaid.pk}")["Permissions-Policy"]

    def test_allow_payment_requests_by_the_providers_origins(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        origins = ("https://js.provider.example", "https://wallet.example")
        monkeypatch.setattr(provider.current_provider(), "payment_origins", origins)
        wanted = 'payment=(self "https://js.provider.example" "https://wallet.example")'
        assert client.get("/pay?id=x")["Permissions-Policy"].endswith(wanted)
        assert client.get("/portal")["Permissions-Policy"].endswith("payment=(self)")


class TestReferrer:
    @pytest.mark.parametrize("address", SECRETS)
    def test_is_never_sent_from_a_secret_address(self, client: Client, address: str) -> None:
        assert client.get(address)["Referrer-Policy"] == "no-referrer"

    @pytest.mark.parametrize("address", ["/pay?id=x", "/accounts/login/", "/api/docs"])
    def test_of_other_pages_is_sent_only_to_our_origin(self, client: Client, address: str) -> None:
        assert client.get(address)["Referrer-Policy"] == "same-origin"


class TestFormWithNullOrigin:
    """Forms on pages with the policy `no-referrer`. Browsers send these forms with the origin `null`."""

    def test_is_accepted_with_its_token(self, at: Callable[[str], Checkout]) -> None:
        share = at("shared").payment_requests.get(status="open")
        for address, target in (
            (f"/pay/share/{share.token}", f"/pay/share/{share.token}/phone"),
            (f"/pay/share/{share.token}", "/pay/language"),
        ):
            browser = Client(enforce_csrf_checks=True)
            form = {"csrfmiddlewaretoken": token_of(browser, address), "phone": "07700 900456"}
            assert browser.post(target, form, headers={"origin": "null"}).status_code != 403
            del form["csrfmiddlewaretoken"]
            assert browser.post(target, form, headers={"origin": "null"}).status_code == 403
            assert browser.post(target, form, headers={"origin": "https://evil.example"}).status_code == 403

    def test_is_refused_everywhere_else(self) -> None:
        browser = Client(enforce_csrf_checks=True)
        form = {"csrfmiddlewaretoken": token_of(browser, "/accounts/login/"), "login": "x"}
        assert browser.post("/accounts/login/", form, headers={"origin": "null"}).status_code == 403


def token_of(browser: Client, address: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', browser.get(address).content.decode())
    assert found
    return found.group(1)


def test_the_favicon_path_redirects_to_the_icon() -> None:
    assert Client().get("/favicon.ico")["Location"] == "/static/img/favicon.svg"
