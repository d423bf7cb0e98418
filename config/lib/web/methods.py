"""What a request's method asks for (rule api.head)."""

from typing import Any


def asked(request: Any) -> str:
    """Return the request's method, GET for a HEAD, which asks for a GET's head alone."""
    return "GET" if request.method == "HEAD" else str(request.method)
