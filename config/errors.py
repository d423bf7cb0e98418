"""The error table, and the classes of exceptions that belong to each row.

Rules api.error, api.error_codes, api.invalid_header, api.own_words.
"""

from typing import Any, NamedTuple

import orjson
from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.utils.deprecation import MiddlewareMixin
from rest_framework import exceptions as drf
from rest_framework.response import Response

from checkout import authorizations, cancellations, captures, creation, mate_shares, refunds, states
from checkout.api import call_log, detailed_reads, idempotency, responses, state_messages
from checkout.models import Checkout
from config import merchant_api
from config.lib import clock, cursor, locks, strict_json
from config.lib.bulkhead import Busy
from config.lib.web import bodies, request_id
from hosted_page.opt_in import consent
from hosted_page.sandbox.dispute_decisions import NotDisputed
from hosted_page.sandbox.paying import CardDeclined
from payments import operator_stops
from payments.cause import caller_of
from payments.provider import ProviderUnreachable
from portal.oauth import metadata
from webhooks import subscriptions
from webhooks.url_check import TooManyChecks


class Error(NamedTuple):
    """A row of the error table. `retry_after` is in seconds."""

    status: int
    message: str
    retry_after: int | None = None


ERRORS: dict[str, Error] = {
    "invalid_json": Error(
        400, "The body is not valid JSON. Send one UTF-8 JSON object without duplicate keys."
    ),
    "invalid_cursor": Error(400, "The cursor is not from this list. Leave `cursor` out to start again."),
    "invalid_header": Error(400, "A header has an invalid value. Correct the header that `param` names."),
    "missing_token": Error(
        401, "The access token is missing. Send the header Authorization: Bearer <ACCESS_TOKEN>."
    ),
    "invalid_token": Error(401, "The access token is unknown, expired or revoked. Get a new one."),
    "card_declined": Error(402, "The card was declined. Try another test card."),
    "insufficient_scope": Error(
        403, "The access token lacks the scope for this call. Get a token that has it."
    ),
    "merchant_suspended": Error(
        403, "This merchant is suspended and cannot create, pay or capture checkouts. Contact support."
    ),
    "checkout_not_found": Error(404, "No such checkout. Check the checkout_uuid and the environment."),
    "subscription_not_found": Error(404, "No webhook subscription exists. Register one first."),
    "not_found": Error(404, "No such address. Check the path."),
    "method_not_allowed": Error(
        405, "This address does not accept this method. Use a method that the Allow header names."
    ),
    "request_timeout": Error(408, bodies.TOO_SLOW),
    "not_capturable": Error(
        409, "Only an authorized checkout can be captured, until capture_before. Read its status in details."
    ),
    "not_cancellable": Error(
        409, "Only an unpaid or authorized checkout can be cancelled. Refund a captured checkout instead."
    ),
    "not_refundable": Error(
        409,
        "Only a captured checkout without an open dispute can be refunded, and only once. Read its status "
        "in details.",
    ),
    "refund_ref_conflict": Error(
        409, "This merchant_refund_ref belongs to another checkout's refund. Use a new reference."
    ),
    "operation_in_progress": Error(
        409, "A card operation on this checkout is in progress. Try again after Retry-After seconds.", 1
    ),
    "rotation_in_progress": Error(
        409,
        "Three signing secrets are already active. Wait until one in details expires, or send "
        "revoke_previous.",
    ),
    "idempotency_in_progress": Error(
        409,
        "The first request with this Idempotency-Key is still in progress. Try again after Retry-After "
        "seconds.",
        1,
    ),
    "share_not_open": Error(
        409,
        "No share of this checkout is open for this call. Before the payment, `split` opens shares for "
        "`pledge-share`. After the capture, shares are open for `pay-share`.",
    ),
    "not_payable": Error(409, "This checkout is already paid, expired or cancelled. Create a new one."),
    "not_disputed": Error(
        409, "This checkout has no such open dispute. Read its disputes, and wait until one is open."
    ),
    "too_many_ticks": Error(
        409, "This order has reached its limit of opt-in ticks. Use a new checkout; the saved ticks remain."
    ),
    "payload_too_large": Error(413, "The request body is larger than 256 KiB. Send a smaller one."),
    "unsupported_media_type": Error(
        415, "The request body is not plain JSON. Send content-type: application/json, without compression."
    ),
    "invalid_amount_arithmetic": Error(
        422, "The items do not add up to total_amount. Correct the amounts that details compares."
    ),
    "validation_failed": Error(422, "Some fields are not valid. Correct each field that details names."),
    "partial_capture_not_supported": Error(
        422, "The amount is not the checkout's. Send {} to capture the full amount."
    ),
    "partial_refund_not_supported": Error(
        422, "The amount is not the checkout's. Leave `amount` out to refund the full amount."
    ),
    "idempotency_key_reused": Error(
        422,
        "This Idempotency-Key was used for another request. To repeat a request, send the same body. For a new "
        "request, use a new key.",
    ),
    "rate_limited": Error(429, "Too many requests. Try again after Retry-After seconds.", 1),
    "internal_error": Error(500, "An error occurred on our side. Send the request_id to support."),
    "provider_error": Error(
        502, "The card provider refused the operation, and nothing has changed. Read the reason in details."
    ),
    "service_unavailable": Error(
        503, "The service is temporarily unavailable. Try again after Retry-After seconds.", 1
    ),
    "outcome_unknown": Error(
        504, "The card provider did not answer in time. Repeat the request; it takes effect only once.", 2
    ),
}

# The exception classes for each error code. The first code with a matching class wins.
CODES: dict[str, tuple[type[Exception], ...]] = {
    "checkout_not_found": (Checkout.DoesNotExist,),
    "not_capturable": (captures.NotCapturable,),
    "not_cancellable": (cancellations.NotCancellable,),
    "not_payable": (authorizations.NotPayable, authorizations.NotTheLead),
    "not_refundable": (refunds.NotRefundable,),
    "refund_ref_conflict": (refunds.RefundRefConflict,),
    "partial_refund_not_supported": (refunds.PartialRefundNotSupported,),
    "partial_capture_not_supported": (captures.PartialCaptureNotSupported,),
    "operation_in_progress": (states.OperationInProgress,),
    "merchant_suspended": (operator_stops.MerchantSuspended,),
    "service_unavailable": (operator_stops.AllStopped, Busy, ProviderUnreachable, InterfaceError),
    "provider_error": (captures.ProviderRefused,),
    "outcome_unknown": (captures.OutcomeUnknown,),
    "invalid_amount_arithmetic": (creation.InvalidAmountArithmetic,),
    "invalid_header": (idempotency.InvalidIdempotencyKey,),
    "idempotency_key_reused": (idempotency.IdempotencyKeyReused,),
    "idempotency_in_progress": (idempotency.IdempotencyInProgress,),
    "subscription_not_found": (subscriptions.SubscriptionNotFound,),
    "rotation_in_progress": (subscriptions.RotationInProgress,),
    "card_declined": (CardDeclined,),
    "share_not_open": (mate_shares.ShareNotOpen,),
    "not_disputed": (NotDisputed,),
    "too_many_ticks": (consent.TooManyTicks,),
    "rate_limited": (TooManyChecks, drf.Throttled),
    "invalid_cursor": (cursor.InvalidCursor,),
    "missing_token": (merchant_api.MissingToken,),
    "invalid_token": (merchant_api.InvalidToken,),
    "insufficient_scope": (merchant_api.InsufficientScope,),
    "payload_too_large": (RequestDataTooBig,),
    "invalid_json": (UnreadablePostError, strict_json.InvalidJson),
    "validation_failed": (drf.ValidationError,),
    "unsupported_media_type": (drf.UnsupportedMediaType,),
    "method_not_allowed": (drf.MethodNotAllowed,),
    "not_found": (Http404, drf.NotFound),
}


def code_of(exc: Exception) -> str | None:
    """Return the error code of an exception, or None if no row of the table fits."""
    if isinstance(exc, OperationalError):
        return "operation_in_progress" if locks.is_locked(exc) else "service_unavailable"
    return next((code for code, kinds in CODES.items() if isinstance(exc, kinds)), None)


def handle_exception(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Return the error response for an exception. This is DRF's exception handler.

    Return None if no row of the table fits. The request then ends with status 500.
    """
    code = code_of(exc)
    if code is None:
        return None
    if locks.is_locked(exc) and "checkout_uuid" not in context["kwargs"]:
        # A lock on a checkout means that a card operation is running. This call is not about a checkout, so the
        # lock has a different cause.
        code = "service_unavailable"
    row, details = ERRORS[code], _details_of(exc) or _conflict_details(exc, code, context)
    param = details[0].get("param") if details else None
    body = error_envelope(code, message=_specific_message(exc, code, details), details=details, param=param)
    later = {"Retry-After": str(exc.retry_after)} if isinstance(exc, TooManyChecks) else {}
    response = Response(body, status=row.status, headers=error_headers(code) | later)
    if not getattr(context["view"], "is_recorded", False):
        call_log.log_refusal(context["request"], response, context["kwargs"].get("checkout_uuid"))
    return response


def error_envelope(
    code: str, *, message: str = "", details: list[dict[str, Any]] | None = None, param: str | None = None
) -> dict[str, Any]:
    """Return the error body. If `message` is missing, the error table supplies the message."""
    return {
        "error": {
            "code": code,
            "message": message or ERRORS[code].message,
            "param": param,
            "details": details or [],
            "request_id": request_id.current_id(),
            "doc_url": f"{settings.BASE_URL}/api/docs#error-{code}",
        }
    }


def error_headers(code: str) -> dict[str, str]:
    """Return the headers of an error code (rule api.retry_after)."""
    row = ERRORS[code]
    extra = dict[str, str]()
    if row.status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    if row.retry_after is not None:
        extra["Retry-After"] = str(row.retry_after)
    return extra


def _specific_message(exc: Exception, code: str, details: list[dict[str, Any]]) -> str:
    """Return a message for this exception, or "" if the message in the error table is specific enough.

    For example, the message names the wrong field or the place of the error in the JSON. This helps merchants
    who log only the message.
    """
    match exc:
        case strict_json.InvalidJson():
            return f"The body is not valid JSON: {exc}. Send one UTF-8 JSON object."
        case mate_shares.TooLateToCollect():
            return "Less than 10 minutes are left until this checkout expires, so it cannot be split. Create a new one."
        case merchant_api.ClientSecretSent():
            return "The token is a client secret. Exchange it for an access token at POST /oauth/token."
        case merchant_api.InsufficientScope():
            return f"The access token lacks the scope {exc.scope}. Get a token from a key that has it."
        case drf.ValidationError() | idempotency.InvalidIdempotencyKey():
            first, *more = details
            named = f"{first['param']}: " if first["param"] else ""
            return f"{named}{first['message']}" + (f" {len(more)} more in details." if more else "")
    return state_messages.message_for(code, details[0].get("status", "")) if details else ""


def _details_of(exc: Exception) -> list[dict[str, Any]]:
    match exc:
        case creation.InvalidAmountArithmetic():
            difference = exc.actual - exc.expected
            facts = {"expected": exc.expected, "actual": exc.actual, "difference": difference}
            return [{"param": "total_amount", **facts}]
        case captures.PartialCaptureNotSupported() | refunds.PartialRefundNotSupported():
            return [{"param": "amount", "expected": exc.amount}]
        case subscriptions.RotationInProgress():
            return [{"previous_secret_expires_at": clock.iso(at)} for at in exc.until]
        case CardDeclined() | captures.ProviderRefused() if exc.reason:
            return [{"reason": exc.reason}]
        case idempotency.InvalidIdempotencyKey():
            return [{"param": "Idempotency-Key", "message": str(exc)}]
        case drf.ValidationError():
            return flatten(exc.detail)
    return []


# The error codes whose details are the checkout's status and allowed actions.
CONFLICT_CODES = (
    *("not_capturable", "not_cancellable", "not_refundable", "not_payable", "share_not_open"),
    *(
        "not_disputed",
        "operation_in_progress",
        "refund_ref_conflict",
        "idempotency_in_progress",
        "too_many_ticks",
    ),
)


def _conflict_details(exc: Exception, code: str, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the status and the allowed actions of the checkout about which a call was refused.

    The allowed actions depend on more than the cause of the refusal. The function therefore reads the checkout
    again, as the API's read call does. Return an empty list if the code is not in
    CONFLICT_CODES, or if the checkout cannot be read. Rule api.conflict.
    """
    if code not in CONFLICT_CODES or "checkout_uuid" not in context["kwargs"]:
        return []
    merchant, checkout_uuid = caller_of(context["request"]).merchant, context["kwargs"]["checkout_uuid"]
    try:
        checkout = detailed_reads.read_without_expiring(merchant, checkout_uuid)
        return [responses.StandingOut.write(checkout) | _dispute_details(exc)]
    except (Checkout.DoesNotExist, DatabaseError):
        return []


def _dispute_details(exc: Exception) -> dict[str, Any]:
    """Return the dispute that prevents a refund, or an empty dict if there is none."""
    dispute = exc.dispute if isinstance(exc, refunds.NotRefundable) else None
    return {"dispute": responses.DisputeOut.write(dispute)} if dispute is not None else {}


def flatten(detail: Any, param: str = "") -> list[dict[str, Any]]:
    """Return a serializer's nested errors as a flat list of fields, such as `items[2].currency`.

    Rule api.all_fields.
    """
    if isinstance(detail, dict):
        rows = ((_join_names(param, name), inner) for name, inner in detail.items())
    elif isinstance(detail, list) and any(isinstance(inner, dict | list) for inner in detail):
        rows = ((f"{param}[{position}]", inner) for position, inner in enumerate(detail))
    else:
        messages = detail if isinstance(detail, list) else [detail]
        return [{"param": param or None, "message": str(message)} for message in messages]
    return [row for name, inner in rows for row in flatten(inner, name)]


def _join_names(param: str, name: Any) -> str:
    if isinstance(name, int):
        return f"{param}[{name}]"
    return f"{param}.{name}" if param and name else param or str(name)


class ApiErrorMiddleware(MiddlewareMixin):
    """Middleware that replaces Django's HTML error pages at API addresses with the JSON error envelope.

    Rule api.json_alone.
    """

    CODES = {
        400: "invalid_json",
        403: "method_not_allowed",  # a POST without a CSRF token to a read-only address
        404: "not_found",
        405: "method_not_allowed",
        413: "payload_too_large",
    }

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        html = response.get("Content-Type", "").startswith("text/html")
        if not (html and response.status_code >= 400 and is_api(request.path_info)):
            return response
        if not _is_host_allowed(request):
            return _wrong_host_response()
        answer = json_error_response(self.CODES.get(response.status_code, "internal_error"))
        if answer.status_code == 405:
            answer["Allow"] = response.get("Allow", "GET, HEAD")
        return answer


def _is_host_allowed(request: HttpRequest) -> bool:
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def _wrong_host_response() -> HttpResponse:
    named = {"param": "Host", "message": f"Must be the service's host. Send requests to {settings.BASE_URL}."}
    return json_error_response("invalid_header", named)


def is_api(path: str) -> bool:
    """Return whether an address is for programs, so that its errors must be JSON.

    `/api/docs` is a page for people, but the files below it are for programs.
    """
    return f"{path}/".startswith(("/api/", "/oauth/", f"{metadata.PATH}/")) and path != "/api/docs"


def json_error_response(code: str, wrong: dict[str, str] | None = None, *, message: str = "") -> HttpResponse:
    """Return the error response for a code, for use outside DRF.

    `wrong` has two keys: `param` names the wrong parameter, and `message` says what is wrong with it. Without
    `wrong`, `message` replaces the message from the error table.
    """
    body = error_envelope(code, message=message)
    if wrong is not None:
        message = f"{wrong['param']}: {wrong['message']}"
        body = error_envelope(code, message=message, details=[wrong], param=wrong["param"])
    return HttpResponse(
        orjson.dumps(body),
        status=ERRORS[code].status,
        content_type="application/json",
        headers=error_headers(code),
    )
