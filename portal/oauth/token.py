"""The token endpoint, which implements the client credentials grant of RFC 6749 (rules token.*)."""

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.views.mixins import OAuthLibMixin

from portal.oauth import client_requests
from portal.oauth.client_requests import Endpoint, InvalidRequest, Parameters
from portal.oauth.library import CLIENT


@csrf_exempt
@sensitive_variables()
def issue_token(request: HttpRequest) -> HttpResponse:
    """Issue an access token (POST /oauth/token). Rule token.answer."""
    return ENDPOINT.answer(request)


def _check_grant(parameters: Parameters) -> None:
    """Raise InvalidRequest for any grant type except client_credentials."""
    if "grant_type" not in parameters:
        raise InvalidRequest("grant_type is missing. Send client_credentials.")
    if parameters["grant_type"] != "client_credentials":
        words = "Send grant_type client_credentials: there is no other."
        raise InvalidRequest(words, "unsupported_grant_type")


def _respond_with_token(request: HttpRequest, parameters: Parameters) -> HttpResponse:
    """Return the response with a new token, or an error response in our words."""
    request.oauth_parameters = parameters  # type: ignore[attr-defined]  # read by library.Core
    _, headers, body, status = OAuthLibMixin().create_token_response(request)  # without the library's view
    if status == 401:
        return client_requests.invalid_client()
    issued: dict[str, str] = orjson.loads(body)
    if status == 400 and issued["error"] == "invalid_scope":
        return client_requests.refusal("invalid_scope", 400, _other_scopes(parameters))
    return HttpResponse(body, status=status, headers={"Content-Type": "application/json", **headers})


def _other_scopes(parameters: dict[str, str]) -> str:
    """Return sentences about the requested scopes that the client lacks, and about the scopes that it has."""
    client = CLIENT.first(parameters["client_id"])
    client_scopes = client.scopes.split() if client is not None else []
    missing_scopes = [
        name
        for name in parameters.get("scope", "").split()
        if name in settings.SCOPES and name not in client_scopes
    ]
    reason = (
        f"This client was not made with {', '.join(missing_scopes)}."
        if missing_scopes
        else "There is no such scope."
    )
    return (
        f"{reason} Ask for some of {', '.join(client_scopes)}, separated by spaces, "
        "or for none, which gives all of them. A key with other scopes is made in the portal, under Keys."
    )


ENDPOINT = Endpoint(("grant_type", "scope"), _check_grant, _respond_with_token)
