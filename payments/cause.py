"""Who acts: given to each verb, kept in the history."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from config.lib.web import request_id
from payments.models import Merchant


@dataclass(frozen=True)
class Cause:
    """An actor (`client:<uuid>`, `user:<uuid>`, `customer:<uuid>`, `pump`) and the request it acted in."""

    actor: str
    request_id: str = ""


@dataclass(frozen=True)
class Caller:
    """An authenticated API client and the merchant that it acts for."""

    merchant: Merchant
    client_uuid: UUID
    scopes: frozenset[str]


PUMP = Cause("pump")


def caller_of(request: Any) -> Caller:
    """Return who calls the API: the authentication has put it on the request."""
    caller: Caller = request.auth
    return caller


def cause_of(request: Any) -> Cause:
    """Return the API client as the one who acts, in this request."""
    return Cause(f"client:{caller_of(request).client_uuid}", request_id.current())
