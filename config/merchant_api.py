"""The HTTP layer of the merchant API: authentication, rate limits, strict JSON parsing and rendering."""

import re
from typing import Any

import orjson
import structlog
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from config import statements
from config.lib import crypto, limits, strict_json
from config.lib.database import queries
from config.lib.web import methods
from payments.cause import Caller, caller_of
from payments.models import Merchant
from portal import keys

MERCHANT_FACTOR = 2  # a merchant's limit for all its clients is this many times the limit of one client
_BEARER = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/=-]{1,512})")


class MissingToken(Exception):
    """Raised if the request has no bearer token."""


class InvalidToken(Exception):
    """Raised if the token is unknown, expired or revoked."""


class ClientSecretSent(InvalidToken):
    """Raised if the caller sent a client secret as the token."""


class InsufficientScope(Exception):
    """Raised if the token lacks the scope for this call."""

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope


class BearerAuthentication(BaseAuthentication):
    """Authentication by bearer token (rule token.needed).

    For each request, one SQL statement looks the token up by its hash. The tokens are not cached.
    """

    def authenticate(self, request: Request) -> tuple[Caller, Caller]:
        header = request.headers.get("Authorization", "")
        if not header[:7].strip().lower().startswith("bearer"):
            raise MissingToken
        found = _BEARER.fullmatch(header)
        if found is None:
            raise InvalidToken
        if found[1].startswith(keys.SECRET_PREFIX):
            raise ClientSecretSent
        caller = _find_caller(found[1])
        structlog.contextvars.bind_contextvars(
            merchant=str(caller.merchant.pk), client=str(caller.client_uuid), **_checkout_of(request)
        )
        return caller, caller


def _checkout_of(request: Request) -> dict[str, str]:
    named = request.parser_context["kwargs"].get("checkout_uuid")
    return {"checkout": str(named)} if named else {}


_MERCHANT = ", ".join(f"merchant.{field.column}" for field in Merchant._meta.concrete_fields)
_FIND_CALLER = statements.FIND_CALLER.replace("{merchant}", _MERCHANT)


def _find_caller(token: str) -> Caller:
    """Return the caller of a token. Raises InvalidToken.

    The statement is plain SQL, because the ORM would build its query again for each call.
    """
    row = queries.row(_FIND_CALLER, [crypto.digest(token)])
    if row is None:
        raise InvalidToken
    client_uuid, scope, is_stale, *merchant = row
    if is_stale:
        # If another call has locked the key's row, the use is not recorded, because calls must not wait for each other.
        queries.execute(statements.RECORD_KEY_USE, [client_uuid])
    names = [field.attname for field in Merchant._meta.concrete_fields]
    return Caller(Merchant.from_db("default", names, merchant), client_uuid, frozenset(scope.split()))


class HasScope(BasePermission):
    """Permission that requires the scope that the view declares for the method (rule token.scope_needed)."""

    def has_permission(self, request: Request, view: Any) -> bool:
        scope = getattr(view, "scopes", {}).get(methods.effective_method(request))
        if scope is not None and scope not in caller_of(request).scopes:
            raise InsufficientScope(scope)
        return True


class ClientLimits(BaseThrottle):
    """Rate limits for each API client, and for all clients of a merchant together.

    Each bucket (a group of calls, such as reads) has its own limits. A call is always allowed if its view
    declares it urgent: the first capture of a hold, and each capture near the end of a hold.

    Rules limit.buckets, limit.merchant, limit.last_capture.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        bucket = "reads" if methods.effective_method(request) == "GET" else getattr(view, "limit", "creates")
        caller = caller_of(request)
        merchants = limits.Shared((str(caller.merchant.pk),), MERCHANT_FACTOR)
        if limits.spend(bucket, str(caller.client_uuid), shared=merchants):
            return True
        is_urgent = getattr(view, "is_urgent", None)
        return is_urgent is not None and is_urgent(request, **view.kwargs)


class StrictJSONParser(BaseParser):
    """Parser for a body of one JSON value. It refuses JSON that other parsers interpret in different ways.

    Examples are duplicate keys, NaN, a byte order mark and lone surrogates.

    Rules api.body, api.strict_json.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        request: Request = parser_context["request"]
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise UnsupportedMediaType(str(request.headers["Content-Encoding"]))
        # Django checks the size of `request.body`, but not of `stream`.
        return strict_json.parse(request.body)


class DataRenderer(BaseRenderer):
    """Renderer that writes a view's data or error, which is already in its envelope, as JSON (rule api.data)."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)


class AlwaysJSON(DefaultContentNegotiation):
    """Content negotiation that always chooses JSON and ignores Accept (rule api.json_alone)."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type
