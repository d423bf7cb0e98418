"""The answer to what is no HTTP request, so that no server repeats it in words of its own (rule api.malformed)."""

import json
from typing import Any

from django.conf import settings

LINE = "The address is too long. Send what is long in the body."
HEADERS = "The headers are too many or too long. Send fewer, or shorter ones."
OTHER = "This is no valid HTTP request. Let an HTTP library write it: each header is one line of printable characters."


def answer(words: str, request_id: str) -> bytes:
    """Return the whole answer, head and body, that says these words in the envelope of errors; the connection ends."""
    error: dict[str, Any] = {
        "code": "invalid_header",
        "message": words,
        "param": None,
        "details": [],
        "request_id": request_id,
        "doc_url": f"{settings.BASE_URL}/api/docs#error-invalid_header",
    }
    body = json.dumps({"error": error}).encode()
    head = (
        *("HTTP/1.1 400 Bad Request", "Content-Type: application/json", f"Content-Length: {len(body)}"),
        *(f"X-Request-Id: {request_id}", "Cache-Control: no-store", "Connection: close", "", ""),
    )
    return "\r\n".join(head).encode() + body
