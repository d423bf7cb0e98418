"""The revocation endpoint, at which a client ends its own token (RFC 7009)."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from oauth2_provider.views.mixins import OAuthLibMixin

from portal.oauth import client_requests
from portal.oauth.client_requests import Endpoint, InvalidRequest, Parameters


@csrf_exempt
@sensitive_variables()
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke a token (POST /oauth/revoke). Rule token.revocation."""
    return ENDPOINT.answer(request)


def _check_token_is_present(parameters: Parameters) -> None:
    if "token" not in parameters:
        raise InvalidRequest("token is missing. Send the access token that is to end.")


def _delete_token(request: HttpRequest, parameters: Parameters) -> HttpResponse:
    """Delete the token if it belongs to the client. For any other token, the response is the same."""
    request.oauth_parameters = parameters  # type: ignore[attr-defined]  # read by library.Core
    _, _, _, status = OAuthLibMixin().create_revocation_response(request)  # without the library's view
    if status == 401:
        return client_requests.invalid_client()
    response = HttpResponse(status=status)
    del response["Content-Type"]  # there is no body
    return response


ENDPOINT = Endpoint(("token", "token_type_hint"), _check_token_is_present, _delete_token)
