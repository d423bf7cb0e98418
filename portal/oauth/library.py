"""Our parts of django-oauth-toolkit. They read the requests, check the clients and write the tokens."""

from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.db import transaction
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.scopes import BaseScopes
from oauthlib.oauth2.rfc6749.errors import InvalidClientError

from config.lib.database import queries
from config.lib.prepared import Prepared
from portal import statements
from portal.keys import ClientSecretHasher
from portal.models import ApiClient

_DUMMY = ClientSecretHasher().encode("nobody")

CLIENT = Prepared(lambda client_id: ApiClient.objects.filter(client_id=client_id), str)


class Core(OAuthLibCore):
    """Gives the library the parameters that the view has parsed and checked."""

    def extract_body(self, request: Any) -> list[tuple[str, str]]:
        return list(request.oauth_parameters.items())

    def extract_headers(self, request: Any) -> dict[str, Any]:
        """Return the headers without Authorization, because the Basic credentials are already parameters."""
        headers: dict[str, Any] = super().extract_headers(request)
        headers.pop("Authorization", None)
        headers.pop("HTTP_AUTHORIZATION", None)
        return headers


class ClientScopes(BaseScopes):
    """A client may request any of its scopes. If it does not name a scope, it gets all of them."""

    def get_all_scopes(self) -> dict[str, str]:
        return settings.SCOPES

    def get_available_scopes(self, application: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return application.scopes.split() if application is not None else []

    def get_default_scopes(self, application: Any = None, *args: Any, **kwargs: Any) -> list[str]:
        return self.get_available_scopes(application)


class Validator(OAuth2Validator):
    """Accepts a client's current secret, and during a rotation also the previous one.

    The check takes the same time for an unknown client.
    """

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        request.client = CLIENT.first(request.client_id or "")
        if super().authenticate_client(request, *args, **kwargs):
            request.matching_secret = request.client.client_secret
            return True
        client: ApiClient | None = request.client
        previous = client.previous_secret if client is not None and client.is_usable(None) else ""
        matches = check_password(getattr(request, "client_secret", "") or "", previous or _DUMMY)
        request.matching_secret = previous
        return matches and bool(previous)

    def save_bearer_token(self, token: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Write the token. Raises InvalidClientError if the secret was stopped since it was checked.

        The stop of a secret deletes the tokens that exist. Without the lock, a token that is written at the same
        moment would outlive its secret.
        """
        with transaction.atomic(durable=True):
            if queries.row(statements.LOCK_SECRET, [request.client.pk, request.matching_secret]) is None:
                raise InvalidClientError(request=request)
            return self._save_bearer_token(token, request, *args, **kwargs)
