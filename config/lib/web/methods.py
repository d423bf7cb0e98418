"""How a request's method is interpreted (rule api.head)."""

from typing import Any


def effective_method(request: Any) -> str:
    """Return the request's method, with GET in place of HEAD, because HEAD asks for the headers of a GET."""
    return "GET" if request.method == "HEAD" else str(request.method)
