import base64
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from oauth2_provider.models import AccessToken

from portal.models import ApiClient
from tests.conftest import Api

pytestmark = pytest.mark.django_db


def ask(body: Any, content_type: str = "application/json", **headers: str) -> Any:
    raw = json.dumps(body) if isinstance(body, dict) else body
    return Client().post("/oauth/token", raw, content_type=content_type, headers=headers)


def credentials(api: Api, **changes: str) -> dict[str, str]:
    own = {"client_id": api.key.client.client_id, "client_secret": api.key.client_secret}
    return {"grant_type": "client_credentials"} | own | changes


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


class TestToken:
    @pytest.mark.rule("token.answer", "token.ways")
    def test_is_issued_for_json_form_and_basic(self, api: Api) -> None:
        own = credentials(api)
        form = "&".join(f"{name}={value}" for name, value in own.items())
        header = basic(own["client_id"], own["client_secret"])
        answers = [
            ask(own),
            ask(form, "application/x-www-form-urlencoded"),
            ask({"grant_type": "client_credentials"}, authorization=header),
            ask("grant_type=client_credentials", "application/x-www-form-urlencoded", authorization=header),
        ]
        for answer in answers:
            assert answer.status_code == 200 and answer["Cache-Control"] == "no-store"
            assert {**answer.json(), "access_token": ""} == {
                "access_token": "",
                "token_type": "Bearer",
                "expires_in": 3600,
                "scope": "checkouts:read checkouts:write refunds:write webhooks:read webhooks:write",
            }

    @pytest.mark.rule("token.hashed")
    def test_is_stored_hashed_as_the_secret_is(self, api: Api) -> None:
        stored = AccessToken.objects.get()
        assert stored.token == "" and api.token not in str(vars(stored))
        assert api.key.client_secret not in ApiClient.objects.get().client_secret

    def test_without_a_database_is_a_503_that_can_be_retried(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*args: object, **facts: object) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(AccessToken, "save", away)
        answer = ask(credentials(api))
        assert (answer.status_code, answer["Retry-After"]) == (503, "1")
        assert answer.json() == {
            "error": "temporarily_unavailable",
            "error_description": "Try again in a second.",
        }

    @pytest.mark.rule("token.scopes")
    def test_can_be_narrowed(self, api: Api) -> None:
        api.token = api.get_token(scope="webhooks:read")
        assert api.get("webhooks/deliveries").status_code == 200
        refused = api.get("checkouts")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")

    @pytest.mark.rule("token.keys")
    def test_both_live_secrets_work_while_one_is_rotated(self, api: Api) -> None:
        old = make_password("sk_old", hasher="client_secret")
        ApiClient.objects.update(previous_secret=old)
        assert ask(credentials(api)).status_code == 200
        assert ask(credentials(api, client_secret="sk_old")).status_code == 200
        assert ask(credentials(api, client_secret="sk_other")).status_code == 401

    @pytest.mark.rule("token.keys")
    def test_of_a_revoked_client_ends_at_once(self, api: Api) -> None:
        assert api.get("checkouts").status_code == 200
        ApiClient.objects.update(revoked_at=timezone.now())
        assert api.get("checkouts").json()["error"]["code"] == "invalid_token"
        assert ask(credentials(api)).status_code == 401

    def test_that_has_expired_is_refused(self, api: Api) -> None:
        AccessToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
        refused = api.get("checkouts")
        assert refused.json()["error"]["code"] == "invalid_token"
        assert refused["WWW-Authenticate"] == "Bearer"

    def test_is_looked_up_in_one_statement(self, api: Api) -> None:
        # The first call of a minute also records that the key was used.
        api.get("webhooks/deliveries?limit=0")
        with CaptureQueriesContext(connection) as queries:
            api.get("webhooks/deliveries?limit=0")
        assert len([query for query in queries if "checkout_apicall" not in query["sql"]]) == 1

    def test_is_issued_in_three_statements(self, api: Api) -> None:
        with CaptureQueriesContext(connection) as queries:
            ask(credentials(api))
        assert len([query for query in queries if "SAVEPOINT" not in query["sql"]]) == 3


class TestRefusal:
    @pytest.mark.parametrize(
        ("changes", "status", "code"),
        [
            ({"client_secret": "wrong"}, 401, "invalid_client"),
            ({"client_id": "nobody"}, 401, "invalid_client"),
            ({"grant_type": "password"}, 400, "unsupported_grant_type"),
            ({"grant_type": "authorization_code"}, 400, "unsupported_grant_type"),
            ({"scope": "everything"}, 400, "invalid_scope"),
            ({"client_id": "a\x00b"}, 400, "invalid_request"),
            ({"client_secret": "x" * 5000}, 400, "invalid_request"),
            ({"client_id": 5}, 400, "invalid_request"),
        ],
    )
    def test_is_an_rfc_6749_answer(self, api: Api, changes: dict[str, Any], status: int, code: str) -> None:
        before = AccessToken.objects.count()
        answer = ask(credentials(api) | changes)
        assert (answer.status_code, answer.json()["error"]) == (status, code)
        assert answer["Content-Type"] == "application/json" and AccessToken.objects.count() == before

    @pytest.mark.parametrize(
        ("scope", "why"),
        [
            ("customers:read checkouts:read", "This client was not made with customers:read."),
            ("everything", "There is no such scope."),
        ],
    )
    def test_of_a_scope_names_the_scopes_of_the_client(self, api: Api, scope: str, why: str) -> None:
        words = ask(credentials(api) | {"scope": scope}).json()["error_description"]
        assert words.startswith(f"{why} Ask for some of checkouts:read, ") and "customers:read," not in words

    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            ("{", "application/json"),
            ("[]", "application/json"),
            ('{"grant_type": "client_credentials", "grant_type": "client_credentials"}', "application/json"),
            (
                "grant_type=client_credentials&grant_type=client_credentials",
                "application/x-www-form-urlencoded",
            ),
            ("", "application/json"),
            ("x", "text/plain"),
            (b"\xff\xfe", "application/json"),
            ('{"é\\\\": "1", "é\\\\": "2"}', "application/json"),
        ],
    )
    def test_of_an_unreadable_body_is_invalid_request(self, api: Api, body: Any, content_type: str) -> None:
        answer = ask(body, content_type)
        told = answer.json()
        assert (answer.status_code, told["error"]) == (400, "invalid_request")
        assert re.fullmatch(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+", told["error_description"]), "RFC 6749, 5.2"

    @pytest.mark.django_db
    @pytest.mark.parametrize("header", ["Basic", "Basic x", "Basic é", "Basic /w==", "Basic " + "a" * 8_200])
    def test_of_credentials_that_cannot_be_read(self, header: str) -> None:
        answer = ask({"grant_type": "client_credentials"}, authorization=header)
        assert answer.status_code in (400, 401) and answer.json()["error"] in (
            "invalid_request",
            "invalid_client",
        )

    def test_of_two_clients_at_once(self, api: Api) -> None:
        answer = ask(credentials(api), authorization=basic("somebody", "else"))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")

    def test_of_other_methods(self) -> None:
        assert Client().get("/oauth/token").status_code == 405
