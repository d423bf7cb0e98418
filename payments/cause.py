"""Who acts: the `Cause` of a change, which is stored in the history, and the `Caller` of the API."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from config.lib.web import request_id
from payments.models import Merchant


@dataclass(frozen=True)
class Cause:
    """An actor (`client:<uuid>`, `user:<uuid>`, `customer:<uuid>` or `pump`) and the id of the actor's request."""

    actor: str
    request_id: str = ""


@dataclass(frozen=True)
class Caller:
    """An authenticated API client and the merchant for which it acts."""

    merchant: Merchant
    client_uuid: UUID
    scopes: frozenset[str]


PUMP = Cause("pump")


def caller_of(request: Any) -> Caller:
    """Return the API client that makes this request. The authentication has stored it in the request."""
    caller: Caller = request.auth
    return caller


def cause_of(request: Any) -> Cause:
    """Return the cause of the API client's actions in this request."""
    return Cause(f"client:{caller_of(request).client_uuid}", request_id.current_id())


def cause_of_operator(request: Any) -> Cause:
    """Return the cause of an operator's actions in this admin request."""
    return Cause(f"user:{request.user.pk}", request_id.current_id())
