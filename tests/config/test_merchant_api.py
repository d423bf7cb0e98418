"""The HTTP contract of the merchant API: tokens, bodies that are not JSON objects, and unknown addresses."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken

from checkout.models import ApiCall, Checkout
from portal.models import ApiClient
from tests import factories
from tests.conftest import Api
from tests.refusals import nothing_moves, refused

JSON = "application/json"
BASE = "/api/merchant/v1/"
POSTS = [
    "checkouts",
    "checkouts/{uuid}/capture",
    "checkouts/{uuid}/cancel",
    "checkouts/{uuid}/refund",
    "webhooks/subscription",
    "webhooks/secret/rotate",
]
NIL = UUID(int=0)
# Calls of the merchant API with their scopes, except the event feed and the opt-in link.
ENDPOINTS = [
    ("POST", "checkouts", "checkouts:write"),
    ("GET", "checkouts", "checkouts:read"),
    ("GET", f"checkouts/{NIL}", "checkouts:read"),
    ("POST", f"checkouts/{NIL}/capture", "checkouts:write"),
    ("POST", f"checkouts/{NIL}/cancel", "checkouts:write"),
    ("POST", f"checkouts/{NIL}/refund", "refunds:write"),
    ("POST", "webhooks/subscription", "webhooks:write"),
    ("GET", "webhooks/subscription", "webhooks:read"),
    ("DELETE", "webhooks/subscription", "webhooks:write"),
    ("POST", "webhooks/secret/rotate", "webhooks:write"),
    ("GET", "webhooks/deliveries", "webhooks:read"),
]


@pytest.fixture
def paths(held: Checkout) -> list[str]:
    """Return the path of each POST of the merchant API, for a held checkout."""
    return [path.format(uuid=held.pk) for path in POSTS]


def send(api: Api, path: str, body: bytes, content_type: str = JSON, **headers: str) -> Any:
    return api.client.generic("POST", BASE + path, body, content_type, headers=api.headers(headers))


class TestBody:
    @pytest.mark.rule("api.strict_json")
    @pytest.mark.parametrize(
        "body",
        [
            b"{",
            b'{"a": 1,}',
            b'{"a": 1} // why',
            b"{'a': 1}",
            b"{a: 1}",
            b"{}{}",
            b"   ",
            b"\xef\xbb\xbf{}",
            b'{"a": "\xff"}',
            '{"a": 1}'.encode("utf-16"),
            b'{"a": NaN}',
            b'{"a": -Infinity}',
            b'{"a": 1e999}',
            b'{"a": 9223372036854775808}',
            b'{"a": ' + b"9" * 5_000 + b"}",
            b'{"a": 01}',
            b'{"a": "\\ud800"}',
            b'{"\\udfff": 1}',
            b'{"a": "\x01"}',
            b'{"a": 1, "a": 1}',
            b'{"a": {"b": 1, "b": 2}}',
            b'{"a": ' + b"[" * 20 + b"]" * 20 + b"}",
            b"[" * 20_000,
            b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ],
        ids=lambda body: repr(body[:24]),
    )
    def test_that_is_not_strict_json_is_refused(self, api: Api, paths: list[str], body: bytes) -> None:
        with nothing_moves():
            for path in paths:
                refused(send(api, path, body), 400, "invalid_json")

    @pytest.mark.rule("api.strict_json")
    def test_error_names_the_line_and_column_of_invalid_json(self, api: Api, paths: list[str]) -> None:
        for path in paths:
            error = refused(send(api, path, b'{"a": 1,\n "b" 2}'), 400, "invalid_json")
            assert "expected ':' after key, at line 2, column 6." in error["message"]

    @pytest.mark.rule("api.body")
    @pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"5", b"true", b"[{}]", b"1.5"])
    def test_that_is_not_an_object_is_refused(self, api: Api, paths: list[str], body: bytes) -> None:
        with nothing_moves():
            for path in paths:
                error = refused(send(api, path, body), 422, "validation_failed", None)
                assert error["details"] == [{"param": None, "message": "Must be an object."}]

    @pytest.mark.parametrize("verb", ["capture", "cancel", "rotate"])
    def test_can_be_omitted_if_all_fields_are_optional(self, api: Api, paths: list[str], verb: str) -> None:
        api.post("webhooks/subscription", {"url": "http://127.0.0.1:9/hook", "event_types": ["*"]})
        [path] = [path for path in paths if path.endswith(verb)]
        assert send(api, path, b"").status_code == 200

    def test_is_required_if_fields_are_required(self, api: Api, paths: list[str]) -> None:
        with nothing_moves():
            for path in paths:
                if not path.endswith(("capture", "cancel", "rotate")):
                    assert refused(send(api, path, b""), 422, "validation_failed")["param"]

    @pytest.mark.rule("api.body")
    @pytest.mark.parametrize(
        "content_type",
        [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/xml",
            "application/jsonp",
            "bogus",
            "",
        ],
    )
    def test_of_another_type_is_refused(self, api: Api, paths: list[str], content_type: str) -> None:
        with nothing_moves():
            for path in paths:
                refused(send(api, path, b"{}", content_type), 415, "unsupported_media_type")

    @pytest.mark.rule("api.body")
    @pytest.mark.parametrize("encoding", ["gzip", "br", "deflate"])
    def test_that_is_compressed_is_refused(self, api: Api, paths: list[str], encoding: str) -> None:
        with nothing_moves():
            for path in paths:
                answer = send(api, path, b"{}", **{"content-encoding": encoding})
                refused(answer, 415, "unsupported_media_type")

    @pytest.mark.rule("api.body_size")
    @pytest.mark.parametrize("size", [256 * 1024 + 1, 30_000_000])
    @pytest.mark.parametrize("headers", [{}, {"idempotency-key": "k"}], ids=["plain", "with a key"])
    def test_that_is_too_large_is_refused(
        self, api: Api, paths: list[str], size: int, headers: dict[str, str]
    ) -> None:
        body = b"{}" + b" " * (size - 2)
        with nothing_moves():
            for path in paths:
                refused(send(api, path, body, **headers), 413, "payload_too_large")

    @pytest.mark.parametrize(
        "content_type", [f"{JSON}; charset=utf-8", f"{JSON};charset=bogus", "Application/JSON"]
    )
    def test_is_utf_8_whatever_the_charset_says(self, api: Api, content_type: str) -> None:
        body = factories.order(merchant_order_id="Ä-1")
        answer = send(api, "checkouts", _encoded(body), content_type)
        assert answer.status_code == 201 and Checkout.objects.get().merchant_order_id == "Ä-1"

    def test_of_the_maximum_size_is_accepted(self, api: Api) -> None:
        body = _encoded(factories.order())
        body += b" " * (256 * 1024 - len(body))
        assert send(api, "checkouts", body).status_code == 201

    def test_with_nineteen_nested_levels_is_accepted(self, api: Api) -> None:
        body = _encoded(factories.order(unknown="DEPTH")).replace(b'"DEPTH"', b"[" * 19 + b"]" * 19)
        assert send(api, "checkouts", body).status_code == 201

    def test_brackets_in_a_string_do_not_count_as_nesting(self, api: Api) -> None:
        name = '[{"\\[' * 20
        answer = send(api, "checkouts", _encoded(factories.order(merchant_order_id=name)))
        assert answer.status_code == 201 and Checkout.objects.get().merchant_order_id == name


def _encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


class TestAddress:
    @pytest.mark.rule("api.json_alone")
    @pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "FROBNICATE"])
    @pytest.mark.parametrize("path", ["checkouts", "checkouts/{uuid}", "checkouts/{uuid}/capture"])
    def test_refuses_other_methods(self, api: Api, held: Checkout, method: str, path: str) -> None:
        with nothing_moves():
            answer = api.client.generic(
                method, BASE + path.format(uuid=held.pk), b"{}", JSON, headers=api.headers({})
            )
            refused(answer, 405, "method_not_allowed")
        assert answer["Allow"] and method not in answer["Allow"].split(", ")

    @pytest.mark.parametrize("path", ["checkouts/{uuid}", "webhooks/deliveries"])
    def test_refuses_a_post_on_read_only_paths(self, api: Api, held: Checkout, path: str) -> None:
        refused(api.post(path.format(uuid=held.pk), {}), 405, "method_not_allowed")

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
    def test_of_the_schema_and_of_files_accepts_only_reads(self, api: Api, method: str) -> None:
        strict = Client(enforce_csrf_checks=True)
        for client in (api.client, strict):
            for path in ("/api/schema", "/api/docs/receiver.py"):
                answer = client.generic(method, path, b"{}", JSON)
                refused(answer, 405, "method_not_allowed")
                assert answer["Allow"] == "GET, HEAD"

    @pytest.mark.parametrize("path", [path for path in POSTS if path.count("/") > 1])
    def test_refuses_a_get_of_a_verb(self, api: Api, held: Checkout, path: str) -> None:
        with nothing_moves():
            refused(api.get(path.format(uuid=held.pk)), 405, "method_not_allowed")

    @pytest.mark.rule("api.json_alone")
    @pytest.mark.parametrize(
        "path",
        [
            "/api",
            "/oauth",
            "/api/",
            "/api/docs/",
            "/api/docs/nope",
            "/api/docs/nope/nope",
            "/api/merchant/v1/",
            "/api/merchant/v2/checkouts",
            "/api/merchant/v1/Checkouts",
            "/api/merchant/v1/checkouts/",
            "/api/merchant/v1//checkouts",
            "/api/merchant/v1/checkouts/{uuid}/",
            "/api/merchant/v1/checkouts/{uuid}/capture/",
            "/api/merchant/v1/checkouts/{uuid}/void",
            "/api/merchant/v1/checkouts/..%2f..%2fadmin",
            "/api/merchant/v1/checkouts%00",
            "/api/merchant/v1/<script>",
            "/oauth/token/",
            "/oauth/authorize",
        ],
    )
    def test_that_does_not_exist_returns_a_json_404(self, api: Api, held: Checkout, path: str) -> None:
        with nothing_moves():
            for method in ("GET", "POST", "DELETE"):
                address, headers = path.format(uuid=held.pk), api.headers({})
                refused(api.client.generic(method, address, b"{}", JSON, headers=headers), 404, "not_found")

    @pytest.mark.rule("api.json_alone")
    @pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/*;q=0.1", "garbage", ""])
    def test_returns_json_with_any_accept_header(self, api: Api, unpaid: Checkout, accept: str) -> None:
        answer = api.get(f"checkouts/{unpaid.pk}", accept=accept)
        assert (answer.status_code, answer["Content-Type"]) == (200, JSON)
        refused(api.get("checkouts/x", accept=accept), 404, "checkout_not_found")

    def test_with_another_host_is_refused(self, api: Api) -> None:
        refused(api.get("checkouts", host="evil.example"), 400, "invalid_header")

    def test_records_every_refused_call_of_a_checkout(self, api: Api, unpaid: Checkout) -> None:
        refused(send(api, f"checkouts/{unpaid.pk}/capture", b"{"), 400, "invalid_json")
        call = ApiCall.objects.get()
        assert (call.checkout_uuid, call.status, call.error_code) == (unpaid.pk, 400, "invalid_json")


class TestBearer:
    @pytest.mark.rule("token.needed")
    @pytest.mark.parametrize(("method", "path", "scope"), ENDPOINTS)
    def test_token_is_required_by_every_call(self, api: Api, method: str, path: str, scope: str) -> None:
        with nothing_moves():
            answer = api.client.generic(method, f"/api/merchant/v1/{path}")
            refused(answer, 401, "missing_token")
        assert answer["WWW-Authenticate"] == "Bearer"

    @pytest.mark.rule("token.scope_needed")
    @pytest.mark.parametrize(("method", "path", "scope"), ENDPOINTS)
    def test_needs_the_scope(self, api: Api, method: str, path: str, scope: str) -> None:
        others = " ".join(name for _, _, name in ENDPOINTS if name != scope)
        headers = {"authorization": f"Bearer {api.get_token(scope=others)}"}
        with nothing_moves():
            refused(
                api.client.generic(method, f"/api/merchant/v1/{path}", headers=headers),
                403,
                "insufficient_scope",
            )

    @pytest.mark.rule("token.scope_needed", "api.head")
    @pytest.mark.parametrize("path", [path for method, path, _ in ENDPOINTS if method == "GET"])
    def test_needs_the_scope_for_a_head_too(self, api: Api, path: str) -> None:
        """A HEAD request needs the same scope as GET, because it shows the length of the response."""
        whole, head = api.get(path), api.client.head(f"{BASE}{path}", headers=api.headers({}))
        assert (head.status_code, head.content) == (whole.status_code, b"")
        headers = {"authorization": f"Bearer {api.get_token(scope='refunds:write')}"}
        assert api.client.head(f"{BASE}{path}", headers=headers).status_code == 403

    @pytest.mark.parametrize(
        ("header", "code"),
        [
            ("", "missing_token"),
            ("Basic dTpw", "missing_token"),
            ("{token}", "missing_token"),
            ("Bearer", "invalid_token"),
            ("Bearer ", "invalid_token"),
            ("Bearer {token} {token}", "invalid_token"),
            ("Bearer {token},Bearer {token}", "invalid_token"),
            ("Bearer {token}x", "invalid_token"),
            ("Bearer garbage", "invalid_token"),
            ("Bearer " + "x" * 10_000, "invalid_token"),
            ("Bearer tökén", "invalid_token"),
            ("Bearer a\x00b", "invalid_token"),
            ('Bearer "{token}"', "invalid_token"),
        ],
    )
    def test_refuses_a_header_without_a_valid_token(
        self, api: Api, held: Checkout, header: str, code: str
    ) -> None:
        headers = {"authorization": header.format(token=api.token)}
        with nothing_moves():
            answer = api.client.post(f"/api/merchant/v1/checkouts/{held.pk}/capture", headers=headers)
            refused(answer, 401, code)
        assert answer["WWW-Authenticate"] == "Bearer"

    @pytest.mark.rule("token.needed")
    def test_refuses_an_expired_token(self, api: Api, held: Checkout) -> None:
        AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
        with nothing_moves():
            refused(api.post(f"checkouts/{held.pk}/capture"), 401, "invalid_token")

    @pytest.mark.rule("token.needed")
    def test_refuses_the_token_of_a_revoked_client(self, api: Api) -> None:
        ApiClient.objects.update(revoked_at=timezone.now())
        refused(api.get("checkouts"), 401, "invalid_token")

    def test_reads_no_token_in_address_body_or_cookie(self, api: Api, held: Checkout) -> None:
        api.client.cookies["access_token"] = api.token
        path = f"/api/merchant/v1/checkouts/{held.pk}/capture?access_token={api.token}"
        with nothing_moves():
            body = json.dumps({"access_token": api.token})
            refused(api.client.generic("POST", path, body, JSON), 401, "missing_token")

    @pytest.mark.rule("token.needed")
    def test_explains_the_token_endpoint_if_a_client_secret_is_sent(self, api: Api) -> None:
        headers = {"authorization": f"Bearer {api.key.client_secret}"}
        answer: Any = api.client.get("/api/merchant/v1/checkouts", headers=headers)
        message = refused(answer, 401, "invalid_token")["message"]
        assert "client secret" in message and "POST /oauth/token" in message
        assert api.key.client_secret not in answer.content.decode()

    def test_takes_the_scheme_in_any_case(self, api: Api, unpaid: Checkout) -> None:
        for scheme in ("bearer", "BEARER", "Bearer "):
            headers = {"authorization": f"{scheme} {api.token}"}
            assert api.client.get("/api/merchant/v1/checkouts", headers=headers).status_code == 200
