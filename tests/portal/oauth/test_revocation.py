"""A client revokes a token that was issued to it (RFC 7009)."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.hashers import make_password
from django.db import OperationalError
from django.db.models import QuerySet
from django.test import Client
from oauth2_provider.models import AccessToken
from pytest_django.fixtures import Settings

from portal.models import ApiClient
from tests.conftest import Api
from tests.portal.oauth.test_token import ask, basic, credentials

pytestmark = pytest.mark.django_db
PATH = "/oauth/revoke"
FORM = "application/x-www-form-urlencoded"


def revoke(body: Any, content_type: str = "application/json", **headers: str) -> Any:
    raw = json.dumps(body) if isinstance(body, dict) else body
    client = Client(enforce_csrf_checks=True)
    return client.generic("POST", PATH, raw, content_type, headers=headers)


def request_of(api: Api, **changes: Any) -> dict[str, Any]:
    own = credentials(api) | {"token": api.token}
    del own["grant_type"]
    return own | changes


def accepted(answer: Any) -> None:
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["Cache-Control"] == "no-store" and not answer.has_header("Content-Type")


def refused(answer: Any, status: int, error: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer["Content-Type"] == "application/json" and answer["Cache-Control"] == "no-store"


class TestOwnToken:
    @pytest.mark.rule("token.revocation", "token.ways")
    @pytest.mark.parametrize("method", ["JSON", "form", "Basic"])
    def test_ends_at_once(self, api: Api, method: str) -> None:
        sent = request_of(api)
        assert api.get("checkouts").status_code == 200
        if method == "Basic":
            header = basic(sent["client_id"], sent["client_secret"])
            answer = revoke(urlencode({"token": api.token}), FORM, authorization=header)
        else:
            answer = revoke(sent) if method == "JSON" else revoke(urlencode(sent), FORM)
        accepted(answer)
        ended = api.get("checkouts")
        assert (ended.status_code, ended.json()["error"]["code"]) == (401, "invalid_token")
        assert not AccessToken.objects.exists()

    def test_is_the_only_one_that_ends(self, api: Api) -> None:
        other = api.get_token()
        accepted(revoke(request_of(api)))
        api.token = other
        assert api.get("checkouts").status_code == 200

    @pytest.mark.parametrize("hint", ["access_token", "refresh_token", "magic"])
    def test_ends_with_any_token_type_hint(self, api: Api, hint: str) -> None:
        accepted(revoke(request_of(api, token_type_hint=hint)))
        assert not AccessToken.objects.exists()

    def test_ends_by_either_secret_of_a_key_that_is_rotated(self, api: Api) -> None:
        ApiClient.objects.update(previous_secret=make_password("sk_old", hasher="client_secret"))
        accepted(revoke(request_of(api, client_secret="sk_old")))
        assert not AccessToken.objects.exists()


class TestOtherTokens:
    @pytest.mark.rule("token.revocation")
    def test_another_clients_token_stays_valid(self, api: Api, rival_api: Api) -> None:
        colleague = Api(api.merchant)
        for other in (rival_api, colleague):
            accepted(revoke(request_of(api, token=other.token)))
            assert other.get("checkouts").status_code == 200

    @pytest.mark.rule("token.revocation")
    @pytest.mark.parametrize("token", ["unknown", "é", "sk_secret", "a b"])
    def test_an_unknown_token_gets_the_same_response(self, api: Api, token: str) -> None:
        accepted(revoke(request_of(api, token=token)))
        assert api.get("checkouts").status_code == 200

    def test_a_token_that_has_ended_gets_the_same_response(self, api: Api) -> None:
        for _ in range(2):
            accepted(revoke(request_of(api)))


class TestRefusal:
    @pytest.mark.rule("token.errors")
    @pytest.mark.parametrize(
        ("changes", "status", "error"),
        [
            ({"token": ""}, 400, "invalid_request"),
            ({"token": 5}, 400, "invalid_request"),
            ({"token": None}, 400, "invalid_request"),
            ({"token": "a\x00b"}, 400, "invalid_request"),
            ({"token": "x" * 2049}, 400, "invalid_request"),
            ({"token_type_hint": []}, 400, "invalid_request"),
            ({"client_id": ""}, 401, "invalid_client"),
            ({"client_id": "unknown"}, 401, "invalid_client"),
            ({"client_secret": ""}, 401, "invalid_client"),
            ({"client_secret": "wrong"}, 401, "invalid_client"),
        ],
    )
    def test_names_what_is_wrong_and_ends_nothing(
        self, api: Api, changes: dict[str, Any], status: int, error: str
    ) -> None:
        answer = revoke(request_of(api, **changes))
        refused(answer, status, error)
        words = answer.json()["error_description"]
        assert words.endswith(".") and (error == "invalid_client" or next(iter(changes)) in words)
        assert answer.has_header("WWW-Authenticate") == (status == 401)
        assert api.get("checkouts").status_code == 200

    def test_equals_that_of_the_token_endpoint_for_a_wrong_client(self, api: Api) -> None:
        wrong = request_of(api, client_secret="wrong")
        assert revoke(wrong).json() == ask(credentials(api, client_secret="wrong")).json()

    @pytest.mark.parametrize("query", ["token=x", "client_id=x", "?"])
    def test_of_parameters_in_the_address(self, api: Api, query: str) -> None:
        answer = Client().post(f"{PATH}?{query}", request_of(api), "application/json")
        refused(answer, 400, "invalid_request")

    def test_of_other_methods(self) -> None:
        answer = Client().get(PATH)
        refused(answer, 405, "invalid_request")
        assert answer["Allow"] == "POST"

    def test_of_a_body_that_is_too_large(self, api: Api) -> None:
        refused(revoke(request_of(api, token="x" * 40_000)), 413, "invalid_request")

    @pytest.mark.rule("token.failures")
    def test_after_too_many_failures_at_either_endpoint(self, api: Api, settings: Settings) -> None:
        settings.LIMITS = settings.LIMITS | {"token_failures": "2/minute"}
        refused(revoke(request_of(api, client_secret="wrong")), 401, "invalid_client")
        assert ask(credentials(api, client_secret="wrong")).status_code == 401
        answer = revoke(request_of(api))
        refused(answer, 429, "rate_limited")
        assert answer["Retry-After"] == "60" and ask(credentials(api)).status_code == 429
        assert api.get("checkouts").status_code == 200

    def test_without_a_database_is_a_503_that_can_be_retried(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: object, **__: object) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(QuerySet, "delete", away)
        monkeypatch.setattr(AccessToken, "delete", away)
        answer = revoke(request_of(api))
        refused(answer, 503, "temporarily_unavailable")
        assert answer["Retry-After"] == "1"


@pytest.mark.rule("secret.logs")
def test_no_log_line_has_the_token_or_the_secret(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    secret = api.key.client_secret
    revoke(request_of(api, client_secret=f"{secret}x"))
    revoke(f'{{"token": "{api.token}", "client_secret": "{secret}"')
    revoke(urlencode(request_of(api)), FORM)
    lines = caplog.text
    assert lines.count("'route': 'oauth/revoke'") == 3
    assert api.token not in lines and secret not in lines
