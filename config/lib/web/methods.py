"""The meaning of a request's method (rule api.head)."""

from typing import Any


def effective_method(request: Any) -> str:
    """Return the request's method, or GET for HEAD, because HEAD requests only the headers of a GET."""
    return "GET" if request.method == "HEAD" else str(request.method)
