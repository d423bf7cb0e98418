"""Requests with client credentials. They can be sent as JSON, as a form, or in a Basic header.

This module reads them, limits failures, and writes error responses as in RFC 6749. Rules token.ways,
token.errors, token.failures.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse

from config.lib import limits, strict_json
from config.lib.api import spelling
from config.lib.quota import SITE_FACTOR
from config.lib.web import address

Parameters = dict[str, str]
LONGEST = 2048  # maximum characters of a parameter
LONGEST_BASIC = 8192  # maximum characters of the encoded id and secret in a Basic header
CLIENT = ("client_id", "client_secret")
_BASIC = "Send Basic and the base64 of client_id:client_secret."


class InvalidRequest(Exception):
    """Raised if the request cannot be read, or asks for something unknown.

    The message says why. `error` is the error code in RFC 6749.
    """

    def __init__(self, words: str, error: str = "invalid_request") -> None:
        super().__init__(words)
        self.error = error


class Endpoint(NamedTuple):
    """An endpoint of the OAuth server.

    `parameter_names` are the parameters that it accepts in addition to the client's credentials. The first
    one is required.
    """

    parameter_names: tuple[str, ...]
    check: Callable[[Parameters], None]
    """Raises InvalidRequest for parameters that the endpoint cannot use."""
    respond: Callable[[HttpRequest, Parameters], HttpResponse]
    """Returns the response. It is the error `invalid_client` if the credentials are wrong."""

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Read a request and return the response."""
        if request.method != "POST":
            return refusal("invalid_request", 405, "Use POST.", Allow="POST")
        try:
            parameters = _read_parameters(request, self.parameter_names)
            self.check(parameters)
        except InvalidRequest as invalid:
            return refusal(invalid.error, 400, str(invalid))
        if not parameters.keys() >= set(CLIENT):
            return missing_credentials(parameters)
        try:
            return self._respond_within_limit(request, parameters)
        except (OperationalError, InterfaceError):
            return refusal("temporarily_unavailable", 503, "Try again in a second.", Retry_After="1")

    def _respond_within_limit(self, request: HttpRequest, parameters: Parameters) -> HttpResponse:
        """Call `respond`, unless too many requests with this client id have failed from this network."""
        client_id, networks = (
            parameters.get("client_id", ""),
            address.networks_of(address.caller_address(request)),
        )
        site = limits.Shared((client_id, networks.site), SITE_FACTOR) if networks.site else None
        if not limits.has_calls_left("token_failures", client_id, networks.network, shared=site):
            words = "This client has failed too often. Check client_id and client_secret, and wait a minute."
            return refusal("rate_limited", 429, words, Retry_After="60")
        response = self.respond(request, parameters)
        if response.status_code == 401:
            limits.spend("token_failures", client_id, networks.network, shared=site)
        return response


def missing_credentials(parameters: Parameters) -> HttpResponse:
    """Return the error response to a request without a client id, a client secret, or both."""
    missing = [name for name in CLIENT if name not in parameters]
    what = f"{missing[0]} is missing." if len(missing) == 1 else f"{' and '.join(missing)} are missing."
    words = (
        f"{what} Send client_id and client_secret in the body or by HTTP Basic. A key in the portal has both."
    )
    return refusal("invalid_client", 401, words, WWW_Authenticate='Basic realm="token"')


def invalid_client() -> HttpResponse:
    """Return the error response to wrong credentials.

    It is the same for an unknown client and for a wrong secret, so that it does not reveal whether a client
    exists.
    """
    here, other = ("sandbox", "live environment") if settings.SANDBOX else ("live environment", "sandbox")
    words = (
        "No client has this client_id and client_secret, or it is revoked. Copy both from the portal, under Keys. "
        f"This is the {here}: the {other} has other credentials and another base address."
    )
    return refusal("invalid_client", 401, words, WWW_Authenticate='Basic realm="token"')


def refusal(error: str, status: int, words: str, **headers: str) -> HttpResponse:
    """Return an error response in the format of RFC 6749. `words` name the remedy for the developer.

    Characters in `words` that section 5.2 does not allow are replaced.
    """
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    description = words.translate({ord('"'): "'", ord("\\"): "/"}).encode("ascii", "replace").decode()
    content = {"error": error, "error_description": description}
    return JsonResponse(content, status=status, headers=header_fields)


def too_large() -> HttpResponse:
    """Return the response to a body that is too large to be read."""
    return refusal(
        "invalid_request", 413, "The body is too large. Send only the parameters of this endpoint."
    )


def _read_parameters(request: HttpRequest, names: Sequence[str]) -> Parameters:
    """Return the parameters from the body and from the Basic header. Raises InvalidRequest."""
    if request.META["QUERY_STRING"]:
        raise InvalidRequest("Send the parameters in the body, not in the URL.")
    body = _read_body(request, names)
    parameters = _require_strings({name: value for name, value in body.items() if name in {*CLIENT, *names}})
    for name, value in _read_basic(request).items():
        if parameters.setdefault(name, value) != value:
            raise InvalidRequest(
                "Body and Authorization header name different clients. Send the credentials in only one of "
                "them."
            )
    for name, other in spelling.other_spellings(body, {*CLIENT, names[0]}).items():
        if name not in parameters:
            raise InvalidRequest(f"{name} is missing. You sent {other}: write {name}.")
    for name, value in parameters.items():
        if len(value) > LONGEST or "\x00" in value:
            raise InvalidRequest(
                f"{name} is too long or contains a NUL character. Send it as you received it."
            )
    return parameters


def _read_body(request: HttpRequest, names: Sequence[str]) -> dict[str, Any]:
    """Return all parameters in the body. Raises InvalidRequest, whose message names the parameters `names`."""
    expected = f"{names[0]}, client_id and client_secret"
    try:
        if request.content_type == "application/json":
            content = strict_json.parse(request.body or b"{}")
        elif request.content_type == "application/x-www-form-urlencoded":
            content = _single_values(request)
        elif not request.body:
            content = {}
        else:
            raise InvalidRequest("Send the body as application/json or application/x-www-form-urlencoded.")
    except (RequestDataTooBig, TooManyFieldsSent):
        raise InvalidRequest(f"The body is too large. Send {expected}.") from None
    except strict_json.InvalidJson as invalid:
        raise InvalidRequest(f"The body is not valid JSON: {invalid}. Send one JSON object.") from None
    if not isinstance(content, dict):
        raise InvalidRequest(f"The body is not a JSON object. Send one with {expected}.")
    return content


def _single_values(request: HttpRequest) -> dict[str, Any]:
    if any(len(values) > 1 for _, values in request.POST.lists()):
        raise InvalidRequest("A parameter is repeated. Send each of them once.")
    if any(name.lstrip().startswith("{") for name in request.POST):
        raise InvalidRequest("The body looks like JSON. Send it with Content-Type: application/json.")
    return dict(request.POST.items())


def _require_strings(parameters: dict[str, Any]) -> Parameters:
    """Check that all parameters are strings. Leave out empty ones, which count as omitted (RFC 6749, 3.2)."""
    for name, value in parameters.items():
        if not isinstance(value, str):
            raise InvalidRequest(f"{name} is not a string. Send it in quotes.")
    return {name: value for name, value in parameters.items() if value}


def _read_basic(request: HttpRequest) -> dict[str, str]:
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
