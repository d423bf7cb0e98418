"""The error table in the API's document: the envelope, its codes, and those that each operation returns."""

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any

from config import errors
from config.openapi import examples

Schema = dict[str, Any]
ALL = ("missing_token", "invalid_token", "insufficient_scope", "rate_limited", "internal_error")
ANY = (*ALL, "service_unavailable")
ANYWHERE = (
    "not_found",
    "method_not_allowed",
)  # no operation returns them, because no address or no method matches
WITH_BODY = ("invalid_json", "request_timeout", "payload_too_large", "unsupported_media_type")
WITH_FIELDS = ("validation_failed",)
WITH_CURSOR = ("invalid_cursor",)
WITH_CHECKOUT = ("checkout_not_found",)
WITH_KEY = ("invalid_header", "idempotency_key_reused", "idempotency_in_progress")


def by_code() -> Schema:
    """Return an example body for each code."""
    return {
        code: {"summary": row.message, "value": examples.error(code)} for code, row in errors.ERRORS.items()
    }


def responses(codes: Collection[str]) -> Schema:
    """Return the responses for these codes, by status."""
    rows = [(str(errors.ERRORS[code].status), code) for code in errors.ERRORS if code in codes]
    grouped = groupby(sorted(rows, key=lambda row: row[0]), key=lambda row: row[0])
    return {status: _response([code for _, code in found]) for status, found in grouped}


def _response(codes: list[str]) -> Schema:
    content = {
        "schema": {"$ref": "#/components/schemas/ApiError"},
        "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
    }
    return {
        "description": "\n".join(f"- `{code}`: {errors.ERRORS[code].message}" for code in codes),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in _headers(codes)},
        "content": {"application/json": content},
    }


def _headers(codes: Iterable[str]) -> list[str]:
    sent = {name for code in codes for name in errors.headers(code)}
    return ["X-Request-Id", *(name for name in ("Retry-After", "WWW-Authenticate") if name in sent)]
