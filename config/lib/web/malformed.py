"""Error responses for requests that do not reach Django. They replace gunicorn's own error texts.

Rules api.malformed, api.slow_body.
"""

import json
from typing import Any

from django.conf import settings

LINE = "The URL is too long. Send long values in the body."
FIELDS = "The headers are too many or too long. Send fewer or shorter headers."
OTHER = "This is not a valid HTTP request. Use an HTTP library: each header is one printable line."
BROKEN = "An error occurred on our side. Send the request_id to support."


def error_response(
    words: str, request_id: str, *, code: str = "invalid_header", status: str = "400 Bad Request"
) -> bytes:
    """Return a complete response, head and body, with this message in the error envelope.

    Its header `Connection: close` announces that the connection will be closed.
    """
    body = error_envelope(code, words, request_id)
    named = [*error_headers(body, request_id), ("Connection", "close")]
    head = (f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named), "", "")
    return "\r\n".join(head).encode() + body


def error_envelope(code: str, words: str, request_id: str) -> bytes:
    """Return the body of an error response."""
    error: dict[str, Any] = {
        "code": code,
        "message": words,
        "param": None,
        "details": [],
        "request_id": request_id,
        "doc_url": f"{settings.BASE_URL}/api/docs#error-{code}",
    }
    return json.dumps({"error": error}).encode()


def error_headers(body: bytes, request_id: str) -> list[tuple[str, str]]:
    """Return the headers of an error response with this body."""
    return [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Request-Id", request_id),
        ("Cache-Control", "no-store"),
    ]
