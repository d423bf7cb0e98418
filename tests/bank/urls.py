"""The service's URLs, and the HTTP API through which other processes call the bank.

The bank answers a call, or fails as a real provider does: it hangs, breaks the connection, or returns an
error.
"""

import hmac
import socket
import struct
import time
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from config import urls
from payments.provider import Outcome
from payments.providers.sandbox import bank, client, fault_injection
from payments.providers.sandbox.models import Fault
from tests.bank import http_client, pace

Mode = Fault.Mode
HANG_SECONDS = 20.0
# The calls that tests can make fail.
MONEY = frozenset({"authorize", "capture", "void", "refund", "look_up"})
_UUIDS = ("key", "payment", "account", "subject", "refund", "share")


@csrf_exempt
@require_POST
def ask(request: HttpRequest, verb: str) -> HttpResponse:
    """Carry out a call to the bank from another process."""
    given = request.headers.get("Authorization", "")
    known = verb in MONEY or verb in client.BANK_CALLS
    if not known or not hmac.compare_digest(given.encode(), f"Bearer {http_client.secret()}".encode()):
        raise Http404
    began = time.monotonic()
    try:
        answer = _serve(verb, _typed(orjson.loads(request.body)))
    except bank.UnknownCard:
        return HttpResponse(status=422)
    except fault_injection.CallFailed as broken:
        return _go_wrong(request, broken.mode)
    if verb in MONEY - {"look_up"} and not pace.take(began):
        return _go_wrong(request, Mode.DONE_THEN_HANG)
    written = orjson.dumps(asdict(answer) if isinstance(answer, Outcome) else answer)
    return HttpResponse(written, content_type="application/json")


def _serve(verb: str, arguments: dict[str, Any]) -> Any:
    answer = (
        fault_injection.call_with_faults(verb, arguments)
        if verb in MONEY
        else client.BANK_CALLS[verb](**arguments)
    )
    return None if verb == "answer_challenge" else answer


def _typed(arguments: dict[str, Any]) -> dict[str, Any]:
    """Convert ids and times from JSON strings to UUID and datetime."""
    typed: dict[str, Any] = {
        name: UUID(value) if value and name in _UUIDS else value for name, value in arguments.items()
    }
    if "payments" in typed:
        typed["payments"] = [UUID(value) for value in typed["payments"]]
    if "since" in typed:
        typed["since"] = datetime.fromisoformat(typed["since"])
    return typed


def _go_wrong(request: HttpRequest, mode: Mode) -> HttpResponse:
    if mode in (Mode.HANG, Mode.DONE_THEN_HANG):
        time.sleep(HANG_SECONDS)
    if mode == Mode.NONSENSE:
        return HttpResponse(b'{"verdict": "perhaps', content_type="application/json")
    connection: socket.socket | None = request.META.get("gunicorn.socket")
    if mode in (Mode.DOWN, Mode.DONE_THEN_RESET) and connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return HttpResponse(status=500)


handler403, handler500 = urls.handler403, urls.handler500
urlpatterns = [path("bank/v1/<slug:verb>", ask), *urls.urlpatterns]
