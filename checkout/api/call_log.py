"""The request log that merchants see in the portal (rule portal.requests).

The log contains each POST under /checkouts that was answered, except replays. It contains any other call only
if the call was refused.
"""

from typing import Any
from uuid import UUID

import structlog
from django.db import DatabaseError
from rest_framework.request import Request
from rest_framework.response import Response

from checkout.api import statements
from checkout.models import ApiCall
from config.lib import limits
from config.lib.database import queries
from config.lib.web import request_id
from payments.cause import Caller, caller_of

log = structlog.get_logger("api")
MAX_METHOD, MAX_PARAM = 8, 100


def build_call(request: Request, checkout_uuid: UUID | None) -> ApiCall:
    """Return the log row for a call that has not been answered yet. The row is not saved."""
    caller = caller_of(request)
    return ApiCall(
        merchant=caller.merchant,
        client_uuid=caller.client_uuid,
        checkout_uuid=checkout_uuid,
        method=_storable_text(str(request.method), MAX_METHOD),
        path=_storable_text(request.path, 300),
        request_id=request_id.current_id(),
    )


def set_answer(call: ApiCall, response: Response) -> None:
    """Copy the response's status and error to the row, and set the duration of the call."""
    content: Any = response.data
    if isinstance(content, dict) and "error" in content:
        error = content["error"]
        call.error_code, call.param = error["code"], _storable_text(error["param"] or "", MAX_PARAM)
    call.status, call.duration_ms = response.status_code, request_id.age_ms()


def write_call(call: ApiCall, statement: str = statements.INSERT_API_CALL, **key_parameters: Any) -> None:
    """Write the row for a call to the log.

    `statement` is INSERT_API_CALL, or a longer statement that includes it and also changes the idempotency key.
    `key_parameters` are the extra parameters of the longer statement.
    """
    call_parameters = {name: getattr(call, name) for name in statements.API_CALL_COLUMNS}
    queries.execute(statement, call_parameters | key_parameters)


def log_refusal(request: Request, response: Response, checkout_uuid: UUID | None) -> None:
    """Write the log row for a call that was refused before it was carried out.

    The reason for the refusal is a missing scope, an exceeded limit, or a wrong address or query. At most ten rows a
    minute are written for each API key and error code, and at most twenty for each merchant and error code. These
    limits stop refused calls from flooding the log. If the row cannot be written, the response is still sent. The id of
    the checkout is written only for a POST, because the timeline of a checkout does not show reads.
    """
    if response.status_code == 401 or response.status_code >= 500 or not isinstance(request.auth, Caller):
        return
    call = build_call(request, checkout_uuid if request.method == "POST" else None)
    set_answer(call, response)
    of_merchant = limits.Shared((str(call.merchant_id), call.error_code), 2)
    if not limits.spend("refusals_listed", str(call.client_uuid), call.error_code, shared=of_merchant):
        return
    try:
        write_call(call)
    except DatabaseError as error:
        log.warning("refusal not listed", error=type(error).__name__)


def _storable_text(text: str, length: int) -> str:
    """Return the first `length` characters of a text from a caller. Each NUL is replaced by U+FFFD."""
    return text[:length].replace("\x00", "\N{REPLACEMENT CHARACTER}")
