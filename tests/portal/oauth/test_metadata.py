"""OAuth clients such as authlib configure themselves from the server's metadata."""

import io
from typing import Any

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from django.test import Client
from pytest_django.fixtures import Settings
from requests.adapters import BaseAdapter

from tests.conftest import Api

pytestmark = pytest.mark.django_db
ISSUER = "https://checkout.example"


class Service(BaseAdapter):
    """An adapter for the library `requests` that passes each request to the service in this process."""

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        path = str(request.url).removeprefix(ISSUER)
        headers: Any = dict(request.headers)
        body: Any = request.body or ""
        kind = headers.pop("Content-Type", "")
        answer: Any = Client().generic(str(request.method), path, body, kind, secure=True, headers=headers)
        response = requests.Response()
        response.status_code, response.headers = answer.status_code, answer.headers
        response.raw, response.url = io.BytesIO(answer.content), str(request.url)
        return response

    def close(self) -> None:
        """Do not close anything, because there is no connection."""


@pytest.fixture(autouse=True)
def _base_url(settings: Settings) -> None:
    settings.BASE_URL = ISSUER


@pytest.fixture
def session(api: Api) -> OAuth2Session:
    made = OAuth2Session(api.key.client.client_id, api.key.client_secret)
    made.mount(ISSUER, Service())
    return made


@pytest.mark.rule("token.metadata")
def test_is_valid_for_authlib() -> None:
    answer = Client().get("/.well-known/oauth-authorization-server")
    assert get_well_known_url(ISSUER) == "/.well-known/oauth-authorization-server"
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer["Cache-Control"] == "public, max-age=300"
    described = AuthorizationServerMetadata(answer.json())
    # Our server has no authorization endpoint and therefore no response types. authlib does not accept an empty list of
    # response types.
    AuthorizationServerMetadata(described | {"response_types_supported": ["code"]}).validate()
    assert described["issuer"] == ISSUER
    assert described["grant_types_supported"] == ["client_credentials"]
    assert described["response_types_supported"] == []
    methods = ["client_secret_basic", "client_secret_post"]
    assert described["token_endpoint_auth_methods_supported"] == methods
    assert described["revocation_endpoint_auth_methods_supported"] == methods
    assert "checkouts:write" in described["scopes_supported"]


@pytest.mark.rule("token.metadata", "token.revocation")
@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_authlib_gets_uses_and_revokes_a_token_with_it(session: OAuth2Session, method: str) -> None:
    described = session.get(get_well_known_url(ISSUER, external=True), withhold_token=True).json()
    assert method in described["token_endpoint_auth_methods_supported"]
    session.token_endpoint_auth_method = session.revocation_endpoint_auth_method = method
    token = session.fetch_token(described["token_endpoint"], grant_type="client_credentials")
    orders = f"{ISSUER}/api/merchant/v1/checkouts"
    assert session.get(orders).status_code == 200
    answer = session.revoke_token(
        described["revocation_endpoint"], token=token["access_token"], token_type_hint="access_token"
    )
    assert answer.status_code == 200
    assert session.get(orders).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_refused_in_json(method: str) -> None:
    answer = Client(enforce_csrf_checks=True).generic(method, "/.well-known/oauth-authorization-server")
    assert answer.status_code == 405 and answer.json()["error"]["code"] == "method_not_allowed"
    assert answer["Allow"] == "GET, HEAD"
