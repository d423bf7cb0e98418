"""The client for a bank that runs in another process. It sends JSON over HTTP."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any
from uuid import UUID

import orjson

from config.lib import crypto
from config.lib.web import http
from payments.provider import (
    Books,
    CaptureRecord,
    Card,
    DisputeLine,
    DisputeRecord,
    DisputeStatus,
    Notification,
    Outcome,
    PaymentRecord,
    ProviderUnreachable,
    RefundRecord,
    Verdict,
)
from payments.providers.sandbox import bank, client

SECONDS = 5.0


class ServerError(http.NoAnswer):
    """The bank has answered with a server error."""


def connect(url: str, put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Send this process's calls to the bank at `url`. `put` replaces an attribute, as setattr does."""
    put(client, "call_for_outcome", partial(_money, url))
    put(client, "call_bank", partial(_ask, url))
    put(client, "bank_address", lambda: url)


def secret() -> str:
    """Return the secret that the bank expects."""
    return crypto.keyed_digest("bank", "line")


def _money(url: str, verb: str, /, *, patience: float, **arguments: Any) -> Outcome:
    try:
        return _outcome(_post(url, verb, arguments, patience))
    except ServerError:
        return Outcome(Verdict.UNKNOWN)


def _ask(url: str, verb: str, /, **arguments: Any) -> Any:
    try:
        return _post(url, verb, arguments, SECONDS)
    except http.NoAnswer as error:
        raise ProviderUnreachable from error


def _post(url: str, verb: str, arguments: dict[str, Any], seconds: float) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {secret()}"}
    answer = http.post(f"{url}/bank/v1/{verb}", orjson.dumps(arguments), headers, seconds=seconds)
    if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise bank.UnknownCard
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ServerError(f"HTTP {answer.status}")
    if not answer.is_success:
        raise http.NoAnswer(f"HTTP {answer.status}")
    content = orjson.loads(answer.body)
    read = _READ.get(verb)
    if read is None:
        return content
    return [read(row) for row in content] if isinstance(content, list) else read(content)


def _outcome(content: dict[str, Any]) -> Outcome:
    card = content.pop("card")
    return Outcome(Verdict(content.pop("verdict")), card=Card(**card) if card else None, **content)


def _dispute(row: dict[str, Any]) -> DisputeRecord:
    times = {name: datetime.fromisoformat(row[name]) for name in ("opened_at", "respond_by")}
    lines = [DisputeLine(**_with_time(line)) for line in row["lines"]]
    return DisputeRecord(**row | times | {"status": DisputeStatus(row["status"]), "lines": lines})


def _with_time(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"at": datetime.fromisoformat(row["at"])}


def _refund(row: dict[str, Any]) -> RefundRecord:
    ids = {name: UUID(row[name]) for name in ("operation", "refund", "share") if row[name]}
    return RefundRecord(**_with_time(row) | ids | {"verdict": Verdict(row["verdict"])})


def _books(content: dict[str, Any]) -> Books:
    return Books(
        is_held=content["is_held"],
        capture=CaptureRecord(**_with_time(content["capture"])) if content["capture"] else None,
        refunds=list(map(_refund, content["refunds"])),
        disputes=list(map(_dispute, content["disputes"])),
    )


def _payment(row: dict[str, Any]) -> PaymentRecord:
    ids = {name: UUID(row[name]) for name in ("payment", "account", "subject")}
    return PaymentRecord(**row | ids | {"card": Card(**row["card"])})


def _notification(row: dict[str, Any]) -> Notification:
    operation = UUID(row["operation"]) if row["operation"] else None
    typed = {"payment": UUID(row["payment"]), "verdict": Verdict(row["verdict"]), "operation": operation}
    return Notification(**row | typed)


_READ: dict[str, Callable[[Any], Any]] = {
    "movements": _books,
    "changed": UUID,
    "payments": _payment,
    "tell": _notification,
}
