"""Response bodies that are the same for every caller. They are compressed if the caller accepts gzip.

The service does not compress other bodies. If a body contains both a secret and text that a stranger has
chosen, its compressed size lets the stranger guess the secret (BREACH). Rule docs.compressed.
"""

import gzip
import re
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

MAX_AGE_SECONDS = 300
_GZIP = re.compile(r"(?:x-)?gzip(?: *; *q=(?P<quality>[0-9.]{1,5}))?", re.I)


class PublicBody(NamedTuple):
    """A body that is the same for every caller, uncompressed and compressed with gzip."""

    content_type: str
    plain: bytes
    compressed: bytes


def public_body(content: str | bytes, content_type: str) -> PublicBody:
    """Compress a body. Callers keep the result, so that each process compresses a body only once."""
    plain = content.encode() if isinstance(content, str) else content
    return PublicBody(content_type, plain, gzip.compress(plain, mtime=0))


def public_response(request: HttpRequest, body: PublicBody) -> HttpResponse:
    """Return a response with this body. Caches may store it for five minutes."""
    is_compressed = accepts_gzip(request.headers.get("Accept-Encoding", ""))
    response = HttpResponse(
        body.compressed if is_compressed else body.plain,
        content_type=body.content_type,
        headers={"Cache-Control": f"public, max-age={MAX_AGE_SECONDS}"},
    )
    if is_compressed:
        response["Content-Encoding"] = "gzip"
    patch_vary_headers(response, ["Accept-Encoding"])
    return response


def accepts_gzip(header: str) -> bool:
    """Return whether the header Accept-Encoding names gzip with a quality above zero."""
    codings = (_GZIP.fullmatch(part.strip()) for part in header.split(","))
    return any(coding and (coding["quality"] or "1").strip("0.") for coding in codings)
