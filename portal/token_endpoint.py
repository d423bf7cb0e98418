"""The token endpoint (rules token.*): client credentials by JSON, form or Basic; RFC 6749 answers."""

import base64
from typing import Any
from urllib.parse import unquote_plus

import orjson
from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import BaseScopes
from oauth2_provider.views.mixins import OAuthLibMixin

from config.lib import limits, strict_json
from config.lib.prepared import Prepared
from config.lib.web import address
from portal.keys import ClientSecretHasher
from portal.models import ApiClient

LONGEST = 2048  # characters of a parameter
LONGEST_BASIC = 8192  # characters of id and secret, encoded
KNOWN = {"grant_type", "client_id", "client_secret", "scope"}
_BASIC = "Send Basic and the base64 of client_id:client_secret."
_DUMMY = ClientSecretHasher().encode("nobody")
_CLIENT = Prepared(lambda client_id: ApiClient.objects.filter(client_id=client_id), str)


class InvalidRequest(Exception):
    """The request cannot be read, or asks for what there is not; the message says why, `error` in RFC 6749's word."""

    def __init__(self, words: str, error: str = "invalid_request") -> None:
        super().__init__(words)
        self.error = error


class Core(OAuthLibCore):
    """Gives the library the parameters that the view has parsed and checked."""

    def extract_body(self, request: Any) -> list[tuple[str, str]]:
        return list(request.token_parameters.items())

    def extract_headers(self, request: Any) -> dict[str, Any]:
        """Return the headers without Authorization: Basic credentials are parameters by now."""
        headers: dict[str, Any] = super().extract_headers(request)
        headers.pop("Authorization", None)
        headers.pop("HTTP_AUTHORIZATION", None)
        return headers


class ClientScopes(BaseScopes):
    """A client may ask for any of its scopes, and gets all of them if it asks for none."""

    def get_all_scopes(self) -> dict[str, str]:
        return settings.SCOPES

    def get_available_scopes(self, application: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return application.scopes.split() if application is not None else []

    def get_default_scopes(self, application: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return self.get_available_scopes(application)


class Validator(OAuth2Validator):
    """Accepts either of a client's two live secrets; an unknown client costs the same check."""

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        request.client = _CLIENT.first(request.client_id or "")  # the library would build a query each time
        if super().authenticate_client(request, *args, **kwargs):
            return True
        client: ApiClient | None = request.client
        previous = client.previous_secret if client is not None and client.is_usable(None) else ""
        matches = check_password(getattr(request, "client_secret", "") or "", previous or _DUMMY)
        return matches and bool(previous)

    def save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Write it without the library's transaction: this grant writes one row, by one statement."""
        return self._save_bearer_token(token, request, *args, **kwargs)


@csrf_exempt
@sensitive_variables()
def token(request: HttpRequest) -> HttpResponse:
    """POST /oauth/token. Rules token.answer, token.ways."""
    if request.method != "POST":
        return _refusal("invalid_request", 405, "Use POST.", Allow="POST")
    try:
        parameters = _parameters(request)
        _check(parameters)
    except InvalidRequest as invalid:
        return _refusal(invalid.error, 400, str(invalid))
    try:
        return _limited(request, parameters)
    except (OperationalError, InterfaceError):
        return _refusal("temporarily_unavailable", 503, "Ask again in a second.", Retry_After="1")


def _limited(request: HttpRequest, parameters: dict[str, str]) -> HttpResponse:
    """Issue a token, unless this client has failed too often from this network."""
    pair = (parameters.get("client_id", ""), address.network(address.of(request)))
    if not limits.has_left("token_failures", *pair):
        words = "This client has failed too often. Check client_id and client_secret, and wait a minute."
        return _refusal("rate_limited", 429, words, Retry_After="60")
    response = _issue(request, parameters)
    if response.status_code == 401:
        limits.spend("token_failures", *pair)
    return response


def _issue(request: HttpRequest, parameters: dict[str, str]) -> HttpResponse:
    """Return the response with a new token, or the refusal in our words."""
    request.token_parameters = parameters  # type: ignore[attr-defined]  # read by Core
    _, headers, body, status = OAuthLibMixin().create_token_response(request)  # without the library's HTTP
    if status == 401:
        return _refusal("invalid_client", 401, _other_client(), WWW_Authenticate='Basic realm="token"')
    told: dict[str, str] = orjson.loads(body)
    if status == 400 and told["error"] == "invalid_scope":
        return _refusal("invalid_scope", 400, _other_scopes(parameters))
    return HttpResponse(body, status=status, headers={"Content-Type": "application/json", **headers})


def _other_client() -> str:
    """Return the same words for an unknown client and a wrong secret, so that guesses reveal nothing."""
    here, other = ("test", "live") if settings.SANDBOX else ("live", "test")
    return (
        "No client has this client_id and client_secret, or it is revoked. Copy both from the portal, under Keys. "
        f"This is the {here} environment: the {other} one has other credentials, and another address."
    )


def _other_scopes(parameters: dict[str, str]) -> str:
    """Return what a client that has proven who it is was not made with, and what it was."""
    client = _CLIENT.first(parameters["client_id"])
    own = client.scopes.split() if client is not None else []
    others = [
        name for name in parameters.get("scope", "").split() if name in settings.SCOPES and name not in own
    ]
    why = f"This client was not made with {', '.join(others)}." if others else "There is no such scope."
    return (
        f"{why} Ask for some of {', '.join(own)}, separated by spaces, or for none, which gives all of them. "
        "A key with other scopes is made in the portal, under Keys."
    )


def _refusal(error: str, status: int, words: str, **headers: str) -> HttpResponse:
    """Return an error of RFC 6749 with a sentence that says what to do, in the signs that 5.2 there allows."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    allowed = words.translate({ord('"'): "'", ord("\\"): "/"}).encode("ascii", "replace").decode()
    content = {"error": error, "error_description": allowed}
    return JsonResponse(content, status=status, headers=named)


def too_large() -> HttpResponse:
    """Return the answer to a body too large to be read."""
    words = "The body is too large. Send grant_type, client_id and client_secret, and scope if you like."
    return _refusal("invalid_request", 413, words)


def _parameters(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of body and Basic header; raises InvalidRequest."""
    if request.META["QUERY_STRING"]:
        raise InvalidRequest("Send the parameters in the body, not in the address.")
    found = _body(request)
    for name, value in _basic(request).items():
        if found.setdefault(name, value) != value:
            raise InvalidRequest(
                "Body and Authorization header name different clients. Send the client in one of them."
            )
    return found


def _body(request: HttpRequest) -> dict[str, str]:
    """Return the body's parameters; one without a value counts as omitted (RFC 6749, 3.2)."""
    try:
        if request.content_type == "application/json":
            return _strings(strict_json.parse(request.body or b"{}"))
        if request.content_type == "application/x-www-form-urlencoded":
            return _single(request)
        if not request.body:
            return {}
    except (RequestDataTooBig, TooManyFieldsSent):
        raise InvalidRequest("The body is too large. Send grant_type, client_id and client_secret.") from None
    except strict_json.InvalidJson as invalid:
        raise InvalidRequest(f"The body is not valid JSON: {invalid}. Send one JSON object.") from None
    raise InvalidRequest("Send the body as application/json or application/x-www-form-urlencoded.")


def _single(request: HttpRequest) -> dict[str, str]:
    if any(len(values) > 1 for _, values in request.POST.lists()):
        raise InvalidRequest("A parameter is repeated. Send each of them once.")
    return {name: str(value) for name, value in request.POST.items() if name in KNOWN and value}


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidRequest(
            "The body is no JSON object. Send one with grant_type, client_id and client_secret."
        )
    known = {name: part for name, part in value.items() if name in KNOWN}
    for name, part in known.items():
        if not isinstance(part, str):
            raise InvalidRequest(f"{name} is no string. Send it in quotes.")
    return {name: part for name, part in known.items() if part}


def _basic(request: HttpRequest) -> dict[str, str]:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return {}
    if len(encoded) > LONGEST_BASIC:
        raise InvalidRequest(f"The Basic Authorization header is too long. {_BASIC}")
    try:
        client_id, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        raise InvalidRequest(f"The Basic Authorization header is malformed. {_BASIC}") from None
    return {"client_id": unquote_plus(client_id), "client_secret": unquote_plus(secret)}


def _check(parameters: dict[str, str]) -> None:
    for name, value in parameters.items():
        if len(value) > LONGEST or "\x00" in value:
            raise InvalidRequest(
                f"{name} is too long or holds a NUL character. Send it as it was given to you."
            )
    if "grant_type" not in parameters:
        raise InvalidRequest("grant_type is missing. Send client_credentials.")
    if parameters["grant_type"] != "client_credentials":
        words = "Send grant_type client_credentials: there is no other."
        raise InvalidRequest(words, "unsupported_grant_type")
