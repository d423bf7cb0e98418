"""Rows of the log of requests (rule portal.requests).

Each answered POST under /checkouts leaves a row. Other calls leave one only if they were refused.
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


def begun(request: Request, checkout_uuid: UUID | None) -> ApiCall:
    """Return the unsaved row of a call that is not answered yet."""
    caller = caller_of(request)
    return ApiCall(
        merchant=caller.merchant,
        client_uuid=caller.client_uuid,
        checkout_uuid=checkout_uuid,
        method=_storable(str(request.method), MAX_METHOD),
        path=_storable(request.path, 300),
        request_id=request_id.current_id(),
    )


def answered(call: ApiCall, response: Response) -> None:
    """Set the fields of the row that come from the answer."""
    content: Any = response.data
    if isinstance(content, dict) and "error" in content:
        error = content["error"]
        call.error_code, call.param = error["code"], _storable(error["param"] or "", MAX_PARAM)
    call.status, call.duration_ms = response.status_code, request_id.age_ms()


def write(call: ApiCall, statement: str = statements.INSERT_API_CALL, **of_the_key: Any) -> None:
    """Write the row with a statement that contains INSERT_API_CALL."""
    of_the_call = {name: getattr(call, name) for name in statements.API_CALL_COLUMNS}
    queries.execute(statement, of_the_call | of_the_key)


def note_refusal(request: Request, response: Response, checkout_uuid: UUID | None) -> None:
    """Write the row of a call that was refused before it was carried out.

    The reason is its scope, a limit, its address or its query. At most ten rows a minute are written for each
    key and code, and twenty for each merchant and code. A flood of refusals therefore does not become a flood
    of rows. A row that cannot be written changes no answer. Only the row of a POST names its checkout,
    because a timeline shows no reads.
    """
    if response.status_code == 401 or response.status_code >= 500 or not isinstance(request.auth, Caller):
        return
    call = begun(request, checkout_uuid if request.method == "POST" else None)
    answered(call, response)
    of_merchant = limits.Shared((str(call.merchant_id), call.error_code), 2)
    if not limits.spend("refusals_listed", str(call.client_uuid), call.error_code, shared=of_merchant):
        return
    try:
        write(call)
    except DatabaseError as error:
        log.warning("refusal not listed", error=type(error).__name__)


def _storable(text: str, length: int) -> str:
    """Return a caller's text as a row can hold it: at most `length` characters, without NUL."""
    return text[:length].replace("\x00", "\N{REPLACEMENT CHARACTER}")
