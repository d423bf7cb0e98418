"""Invalid requests to the token endpoint. The revocation endpoint reads its requests with the same code."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken
from pytest_django.fixtures import Settings

from portal.models import ApiClient
from tests.conftest import Api
from tests.refusals import MISSING, without

JSON, FORM = "application/json", "application/x-www-form-urlencoded"


class TokenCaller:
    """A caller that requests tokens with Acme's key, and can change the valid parameters."""

    def __init__(self, api: Api) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.right = {
            "grant_type": "client_credentials",
            "client_id": api.key.client.client_id,
            "client_secret": api.key.client_secret,
        }

    def ask(self, **changes: Any) -> Any:
        return self.send(json.dumps(without(self.right | changes)))

    def send(self, body: str | bytes, content_type: str = JSON, **headers: str) -> Any:
        return self.client.generic("POST", "/oauth/token", body, content_type, headers=headers)

    def basic(self, body: dict[str, str], client_id: str, secret: str) -> Any:
        encoded = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        return self.send(json.dumps(body), authorization=f"Basic {encoded}")


@pytest.fixture
def caller(api: Api) -> TokenCaller:
    return TokenCaller(api)


def refused_token(answer: Any, status: int, error: str) -> None:
    """Fail unless the response is an RFC 6749 error object at the top level, not inside a different object."""
    assert (answer.status_code, answer["Content-Type"]) == (status, JSON), answer.content
    assert answer.json()["error"] == error and "access_token" not in answer.json()
    assert answer.json()["error_description"].endswith(".")
    assert answer["Cache-Control"] == "no-store" and answer["X-Request-Id"]


class TestTokenEndpoint:
    @pytest.mark.rule("token.errors")
    @pytest.mark.parametrize(
        ("changes", "status", "error"),
        [
            ({"grant_type": MISSING}, 400, "invalid_request"),
            ({"grant_type": "password"}, 400, "unsupported_grant_type"),
            ({"grant_type": "authorization_code"}, 400, "unsupported_grant_type"),
            ({"grant_type": "refresh_token"}, 400, "unsupported_grant_type"),
            ({"grant_type": "magic"}, 400, "unsupported_grant_type"),
            ({"grant_type": ""}, 400, "invalid_request"),
            ({"grant_type": 5}, 400, "invalid_request"),
            ({"client_id": MISSING}, 401, "invalid_client"),
            ({"client_id": "client_unknown"}, 401, "invalid_client"),
            ({"client_id": None}, 400, "invalid_request"),
            ({"client_id": "a\x00b"}, 400, "invalid_request"),
            ({"client_secret": MISSING}, 401, "invalid_client"),
            ({"client_secret": ""}, 401, "invalid_client"),
            ({"client_secret": "wrong"}, 401, "invalid_client"),
            ({"client_secret": "pä\u202ess"}, 401, "invalid_client"),
            ({"client_secret": "a\x00b"}, 400, "invalid_request"),
            ({"client_secret": ["x"]}, 400, "invalid_request"),
            ({"client_secret": "x" * 5_000}, 400, "invalid_request"),
            ({"client_secret": "x" * 1_000_000}, 413, "invalid_request"),
            ({"scope": "everything"}, 400, "invalid_scope"),
            ({"scope": "checkouts:read admin"}, 400, "invalid_scope"),
        ],
    )
    def test_refuses_in_rfc_6749s_words(
        self, caller: TokenCaller, changes: dict[str, Any], status: int, error: str
    ) -> None:
        refused_token(caller.ask(**changes), status, error)
        assert AccessToken.objects.count() == 1

    @pytest.mark.rule("token.errors")
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"client_id": MISSING}, "client_id is missing."),
            ({"client_secret": ""}, "client_secret is missing."),
            ({"client_id": MISSING, "client_secret": MISSING}, "client_id and client_secret are missing."),
        ],
    )
    def test_names_the_credentials_that_are_missing(
        self, caller: TokenCaller, changes: dict[str, Any], words: str
    ) -> None:
        answer = caller.ask(**changes)
        refused_token(answer, 401, "invalid_client")
        remedy = (
            "Send client_id and client_secret in the body or by HTTP Basic. A key in the portal has both."
        )
        assert answer.json()["error_description"] == f"{words} {remedy}"
        assert answer["WWW-Authenticate"] == 'Basic realm="token"'

    @pytest.mark.rule("token.errors")
    @pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret"])
    def test_names_the_other_spelling_of_a_missing_parameter(self, caller: TokenCaller, name: str) -> None:
        other = "".join(word.title() for word in name.split("_"))
        answer = caller.ask(**{name: MISSING, other: caller.right[name]})
        refused_token(answer, 400, "invalid_request")
        assert answer.json()["error_description"] == f"{name} is missing. You sent {other}: write {name}."
        misspelt = name[:-1]
        answer = caller.ask(**{name: MISSING, misspelt: caller.right[name]})
        assert answer.json()["error_description"] == f"{name} is missing. You sent {misspelt}: write {name}."

    @pytest.mark.parametrize("mutate", [str.upper, lambda secret: f"{secret} ", lambda secret: secret[:-1]])
    def test_compares_the_secret_exactly(self, caller: TokenCaller, mutate: Any) -> None:
        refused_token(caller.ask(client_secret=mutate(caller.right["client_secret"])), 401, "invalid_client")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                {"client_secret": "wrong"},
                "This is the sandbox: the live environment has other credentials",
            ),
            (
                {"client_id": "client_unknown"},
                "This is the sandbox: the live environment has other credentials",
            ),
            ({"scope": "everything"}, "Ask for some of checkouts:read, checkouts:write"),
            ({"grant_type": "password"}, "Send grant_type client_credentials"),
            ({"grant_type": MISSING}, "Send client_credentials"),
            (
                {"client_secret": "x" * 5_000},
                "client_secret is too long or contains a NUL character. Send it as",
            ),
            ({"client_secret": ["x"]}, "client_secret is not a string. Send it in quotes."),
        ],
    )
    def test_explains_the_remedy(self, caller: TokenCaller, changes: dict[str, Any], words: str) -> None:
        assert words in caller.ask(**changes).json()["error_description"]

    def test_explains_the_wait_after_too_many_failures(self, caller: TokenCaller, settings: Settings) -> None:
        settings.LIMITS = settings.LIMITS | {"token_failures": "1/minute"}
        caller.ask(client_secret="wrong")
        answer = caller.ask(client_secret="wrong")
        refused_token(answer, 429, "rate_limited")
        assert answer["Retry-After"] == "60" and "wait a minute" in answer.json()["error_description"]

    def test_says_if_a_form_holds_json(self, caller: TokenCaller) -> None:
        """By default, `curl --data '{…}'` and Ruby's `Net::HTTP.post` send JSON with the content type of a form."""
        answer = caller.send(b'{"grant_type": "client_credentials"}', FORM)
        refused_token(answer, 400, "invalid_request")
        words = "The body looks like JSON. Send it with Content-Type: application/json."
        assert answer.json()["error_description"] == words

    def test_treats_a_missing_body_as_an_empty_object(self, caller: TokenCaller) -> None:
        for content_type in (JSON, FORM, "text/plain", ""):
            answer = caller.send(b"", content_type)
            refused_token(answer, 400, "invalid_request")
            assert "grant_type is missing" in answer.json()["error_description"]

    @pytest.mark.rule("token.errors")
    def test_gives_the_same_response_to_an_unknown_client_and_a_wrong_secret(
        self, caller: TokenCaller, rival_api: Api
    ) -> None:
        unknown = caller.ask(client_id="client_unknown")
        strangers = caller.ask(client_secret=rival_api.key.client_secret)
        refused_token(strangers, 401, "invalid_client")
        assert unknown.content == strangers.content

    def test_a_revoked_client_gets_no_token(self, caller: TokenCaller) -> None:
        ApiClient.objects.update(revoked_at=timezone.now())
        refused_token(caller.ask(), 401, "invalid_client")

    @pytest.mark.parametrize(
        ("body", "content_type", "error"),
        [
            (b"{", JSON, "invalid_request"),
            (b"[]", JSON, "invalid_request"),
            (b"\xff\xfe", JSON, "invalid_request"),
            (b'{"grant_type": "client_credentials", "grant_type": "password"}', JSON, "invalid_request"),
            (b"grant_type=client_credentials&grant_type=client_credentials", FORM, "invalid_request"),
            (b"grant_type=client_credentials&client_id=a%00b", FORM, "invalid_request"),
            (b"grant_type=client_credentials&client_id=%ff", FORM, "invalid_client"),
            (b"&".join(b"a%d=1" % number for number in range(1_100)), FORM, "invalid_request"),
            (b"grant_type=client_credentials", "text/plain", "invalid_request"),
            (b"--x--", "multipart/form-data; boundary=x", "invalid_request"),
            (b"", JSON, "invalid_request"),
        ],
    )
    def test_refuses_a_body_that_it_cannot_read(
        self, caller: TokenCaller, body: bytes, content_type: str, error: str
    ) -> None:
        status = 401 if error == "invalid_client" else 400
        refused_token(caller.send(body, content_type), status, error)

    def test_says_where_a_body_stops_being_json(self, caller: TokenCaller) -> None:
        answer = caller.send(b'{"grant_type": "client_credentials",}')
        refused_token(answer, 400, "invalid_request")
        assert "trailing comma is not allowed, at line 1, column 36." in answer.json()["error_description"]

    @pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic gA==", "Basic bm9jb2xvbg=="])
    def test_refuses_a_malformed_basic_header(self, caller: TokenCaller, header: str) -> None:
        answer = caller.send(json.dumps({"grant_type": "client_credentials"}), authorization=header)
        assert answer.status_code in (400, 401) and "error" in answer.json()

    @pytest.mark.rule("token.ways")
    def test_refuses_basic_and_body_that_differ(self, caller: TokenCaller) -> None:
        refused_token(
            caller.basic(caller.right, "client_other", caller.right["client_secret"]), 400, "invalid_request"
        )

    def test_answers_basic_in_its_own_scheme(self, caller: TokenCaller) -> None:
        answer = caller.basic({"grant_type": "client_credentials"}, caller.right["client_id"], "wrong")
        refused_token(answer, 401, "invalid_client")
        assert answer["WWW-Authenticate"].startswith("Basic ")

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
    def test_accepts_only_post(self, caller: TokenCaller, method: str) -> None:
        answer = caller.client.generic(method, "/oauth/token", json.dumps(caller.right), JSON)
        refused_token(answer, 405, "invalid_request")
        assert answer["Allow"] == "POST"

    @pytest.mark.rule("token.ways")
    @pytest.mark.parametrize("query", ["", "a=%zz", "foo", "scope=checkouts:read", "="])
    def test_refuses_parameters_in_the_url(self, caller: TokenCaller, query: str) -> None:
        query = query or "&".join(f"{name}={value}" for name, value in caller.right.items())
        for body in (b"{}", json.dumps(caller.right)):
            answer = caller.client.generic("POST", f"/oauth/token?{query}", body, JSON)
            refused_token(answer, 400, "invalid_request")
            words = "Send the parameters in the body, not in the URL."
            assert answer.json()["error_description"] == words

    @pytest.mark.rule("token.ways")
    def test_takes_json_form_and_basic(self, caller: TokenCaller) -> None:
        form = "&".join(f"{name}={value}" for name, value in caller.right.items())
        grant = {"grant_type": "client_credentials"}
        key = caller.right["client_id"], caller.right["client_secret"]
        for answer in (caller.ask(), caller.send(form, FORM), caller.basic(grant, *key)):
            body = answer.json()
            assert set(body) == {"access_token", "token_type", "expires_in", "scope"}
            assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
            assert answer["Cache-Control"] == "no-store"

    @pytest.mark.rule("token.scopes")
    def test_grants_the_requested_scopes(self, caller: TokenCaller) -> None:
        assert caller.ask(scope="checkouts:read").json()["scope"] == "checkouts:read"
        assert len(caller.ask().json()["scope"].split()) == 5

    @pytest.mark.rule("token.ways")
    @pytest.mark.parametrize("kind", [JSON, FORM])
    def test_treats_a_parameter_without_a_value_as_omitted(self, caller: TokenCaller, kind: str) -> None:
        def answer(**changes: str) -> Any:
            parts = caller.right | changes
            return caller.send(json.dumps(parts) if kind == JSON else urlencode(parts), kind)

        assert len(answer(scope="").json()["scope"].split()) == 5
        refused_token(answer(grant_type=""), 400, "invalid_request")
        refused_token(answer(client_id=""), 401, "invalid_client")
        refused_token(answer(client_secret=""), 401, "invalid_client")
        key = caller.right["client_id"], caller.right["client_secret"]
        empty = {"grant_type": "client_credentials", "client_id": "", "client_secret": ""}
        assert caller.basic(empty, *key).status_code == 200

    def test_ignores_unknown_parameters(self, caller: TokenCaller) -> None:
        assert caller.ask(colour="green", number=5).status_code == 200
