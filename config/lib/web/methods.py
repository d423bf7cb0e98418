"""How a request's method is interpreted (rule api.head)."""

from typing import Any


def effective_method(request: Any) -> str:
    """Return the request's method, but GET for HEAD, because a HEAD request wants the headers of a GET."""
    return "GET" if request.method == "HEAD" else str(request.method)
