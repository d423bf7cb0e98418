"""The errors in the API's document: their envelope, all error codes, and the codes of each operation."""

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as drf

from checkout.api.common_fields import STATUS
from checkout.api.responses import DisputeOut, available_actions_field
from config import errors
from config.lib.api import fields
from config.lib.api.responses import OpenChoice, Time
from config.openapi import examples
from portal.developer_docs.reference import ErrorCode

Schema = dict[str, Any]
COMMON_CODES = ("missing_token", "invalid_token", "insufficient_scope", "rate_limited", "internal_error")
# Every call refuses an unknown query parameter with `validation_failed`.
ANY_CALL_CODES = (*COMMON_CODES, "validation_failed", "service_unavailable")
# No operation returns these codes. They mean that no operation has the request's address or method.
NO_OPERATION_CODES = ("not_found", "method_not_allowed")
WITH_BODY = ("invalid_json", "request_timeout", "payload_too_large", "unsupported_media_type")
WITH_CURSOR = ("invalid_cursor",)
WITH_CHECKOUT = ("checkout_not_found",)
WITH_KEY = ("invalid_header", "idempotency_key_reused", "idempotency_in_progress")


@extend_schema_field(OpenApiTypes.INT64)
class Sum(drf.IntegerField):
    """Minor units, as they were sent."""


class ErrorDetailOut(drf.Serializer[Any]):
    """One error of a field, or a fact that the caller needs to correct the request."""

    param = drf.CharField(
        required=False, allow_null=True, help_text="The field at fault, such as `items[2].currency`."
    )
    message = drf.CharField(required=False, help_text="A sentence for a developer that says what to do.")
    expected = Sum(required=False, help_text="The amount that would be correct.")
    actual = Sum(required=False, help_text="The amount that was sent.")
    difference = Sum(required=False, help_text="The amount that was sent minus the correct amount.")
    status = STATUS(required=False)
    available_actions = available_actions_field(required=False)
    dispute = DisputeOut(required=False, help_text="The dispute that prevents the refund.")
    reason = fields.Text(
        maximum=40, required=False, help_text="The provider's reason, such as `insufficient_funds`."
    )
    previous_secret_expires_at = Time(
        required=False, help_text="When the previous secret stops signing. Null if it was revoked."
    )


class ErrorBodyOut(drf.Serializer[Any]):
    """The error and its remedy."""

    code = OpenChoice(
        errors.ERRORS,
        help_text="The error code, for your program to branch on. Handle an unknown code by its HTTP status.",
    )
    message = drf.CharField(help_text="A sentence for a developer that says what to do.")
    param = drf.CharField(allow_null=True, help_text="The field at fault, such as `items[2].currency`.")
    details = drf.ListField(
        child=ErrorDetailOut(),
        help_text="All field errors at once, the expected and actual amount, or the status and allowed "
        "actions.",
    )
    request_id = drf.CharField(
        help_text="The same id as in `X-Request-Id`. Quote it when you contact support."
    )
    doc_url = drf.URLField(help_text="The description of this code in the documentation.")


class ErrorEnvelopeOut(drf.Serializer[Any]):
    """The envelope of all errors of the merchant API (rule api.error)."""

    error = ErrorBodyOut(help_text="The error and its remedy.")


def error_codes() -> dict[str, ErrorCode]:
    """Return the error table for the documentation page."""
    many = (
        dict.fromkeys(ANY_CALL_CODES, "Any call with a token")
        | dict.fromkeys(WITH_BODY, "Any POST")
        | dict.fromkeys(NO_OPERATION_CODES, "Any address")
    )
    return {
        code: ErrorCode(row.status, row.message, examples.error_example(code), many.get(code, ""))
        for code, row in errors.ERRORS.items()
    }


def examples_by_code() -> Schema:
    """Return an example body for each code."""
    return {
        code: {"summary": row.message, "value": examples.error_example(code)}
        for code, row in errors.ERRORS.items()
    }


def error_responses(codes: Collection[str]) -> Schema:
    """Return the responses for these codes, by status."""
    rows = [(str(errors.ERRORS[code].status), code) for code in errors.ERRORS if code in codes]
    grouped = groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0])
    return {status: _response_for([code for _, code in found]) for status, found in grouped}


def _response_for(codes: list[str]) -> Schema:
    content = {
        "schema": {"$ref": "#/components/schemas/ErrorEnvelope"},
        "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
    }
    return {
        "description": "\n".join(f"- `{code}`: {errors.ERRORS[code].message}" for code in codes),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in _header_names(codes)},
        "content": {"application/json": content},
    }


def _header_names(codes: Iterable[str]) -> list[str]:
    sent = {name for code in codes for name in errors.error_headers(code)}
    return ["X-Request-Id", *(name for name in ("Retry-After", "WWW-Authenticate") if name in sent)]
