"""Who acts: given to each verb, kept in the history."""

from dataclasses import dataclass
from uuid import UUID

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
