"""The line to the bank: to the one in this process, or by HTTP to the one at settings.BANK_URL."""

import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings

from config.lib import crypto, idle
from config.lib.web import http
from payments.provider import SERVER_ERROR, Card, Outcome, ProviderUnreachable, Verdict
from payments.providers.sandbox import bank, disputing, fault_injection, journal, notifications, settling
from payments.providers.sandbox.models import Fault

SECONDS = 5.0
MONEY = frozenset({"authorize", "capture", "void", "refund", "look_up"})  # the calls that may go wrong
OTHERS: dict[str, Callable[..., Any]] = {
    "open_session": bank.open_session,
    "tokenise": bank.tokenise,
    "answer_challenge": bank.answer_challenge,
    "act_in_dashboard": bank.act_in_dashboard,
    "decide": disputing.decide,
    "dispute": disputing.dispute,
    "disputed": disputing.disputed,
    "disputes": disputing.disputes,
    "advance": settling.advance,
    "records": journal.records,
    "set_fault": fault_injection.set_fault,
}
_UUIDS = ("key", "payment", "account", "subject")


class ServerError(http.NoAnswer):
    """The bank has answered with an error of its own."""


def money(verb: str, /, *, patience: float, **arguments: Any) -> Outcome:
    """Ask for one of the MONEY calls. Raises whatever a broken line raises; nothing came of it then, or did."""
    if settings.BANK_URL:
        try:
            return _outcome(_post(verb, arguments, patience))
        except ServerError:
            return Outcome(Verdict.UNKNOWN, reason=SERVER_ERROR)
    try:
        return fault_injection.call(verb, arguments)
    except fault_injection.Broken as broken:
        if broken.mode in fault_injection.ERRORS:
            return Outcome(Verdict.UNKNOWN, reason=SERVER_ERROR)
        if broken.mode in (Fault.Mode.HANG, Fault.Mode.DONE_THEN_HANG):
            idle.begin()
            time.sleep(patience)
        raise


def ask(verb: str, /, **arguments: Any) -> Any:
    """Ask for one of the OTHERS. Raises bank.UnknownCard, ProviderUnreachable."""
    if settings.BANK_URL:
        try:
            return _post(verb, arguments, SECONDS)
        except http.NoAnswer as error:
            raise ProviderUnreachable from error
    return OTHERS[verb](**arguments)


def serve(verb: str, body: bytes) -> Any:
    """Do at the bank what arrived over HTTP. Raises misbehaving.Broken, bank.UnknownCard."""
    arguments = _typed(orjson.loads(body))
    answer = fault_injection.call(verb, arguments) if verb in MONEY else OTHERS[verb](**arguments)
    return None if verb == "answer_challenge" else answer


def secret() -> str:
    """Return what opens the line."""
    return crypto.keyed_digest("bank", "line")


def _post(verb: str, arguments: dict[str, Any], seconds: float) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {secret()}"}
    answer = http.post(
        f"{settings.BANK_URL}/bank/v1/{verb}", orjson.dumps(arguments), headers, seconds=seconds
    )
    if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise bank.UnknownCard
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ServerError(f"HTTP {answer.status}")
    if not answer.is_success:
        raise http.NoAnswer(f"HTTP {answer.status}")
    content = orjson.loads(answer.body)
    read = _READ.get(verb)
    return [read(row) for row in content] if read else content


_READ: dict[str, Callable[[Any], Any]] = {
    "records": notifications.as_record,
    "disputes": notifications.as_dispute,
    "disputed": UUID,
}


def _typed(arguments: dict[str, Any]) -> dict[str, Any]:
    """Give ids and times their types again."""
    typed: dict[str, Any] = {
        name: UUID(value) if name in _UUIDS else value for name, value in arguments.items()
    }
    if "payments" in typed:
        typed["payments"] = [UUID(value) for value in typed["payments"]]
    if "since" in typed:
        typed["since"] = datetime.fromisoformat(typed["since"])
    return typed


def _outcome(content: dict[str, Any]) -> Outcome:
    card = content.pop("card")
    return Outcome(Verdict(content.pop("verdict")), card=Card(**card) if card else None, **content)


def as_json(answer: Any) -> bytes:
    """Return an answer as it travels."""
    if isinstance(answer, Outcome):
        return orjson.dumps(asdict(answer))
    return orjson.dumps(answer)
