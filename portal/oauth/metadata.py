"""The authorization server's metadata, with which OAuth clients configure themselves (RFC 8414)."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

PATH = "/.well-known/oauth-authorization-server"
CLIENT_AUTHENTICATION = ("client_secret_basic", "client_secret_post")


def describe_server() -> dict[str, Any]:
    """Return the metadata of this environment's authorization server."""
    return {
        "issuer": settings.BASE_URL,
        "token_endpoint": settings.BASE_URL + reverse("oauth_token"),
        "revocation_endpoint": settings.BASE_URL + reverse("oauth_revoke"),
        "scopes_supported": list(settings.SCOPES),
        "response_types_supported": [],
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
        "revocation_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
        "service_documentation": settings.BASE_URL + reverse("api_docs"),
    }


@require_safe
def show_metadata(request: HttpRequest) -> HttpResponse:
    """Return the metadata (GET /.well-known/oauth-authorization-server). Rule token.metadata."""
    return JsonResponse(describe_server(), headers={"Cache-Control": "public, max-age=300"})
