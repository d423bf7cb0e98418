"""Functions that return the origin or the host of a URL in ASCII, as HTTP headers and DNS need it."""

import re
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

import yarl

LONGEST_NAME, LONGEST_LABEL = 253, 63  # the maximum numbers of characters in DNS
_AUTHORITY = re.compile(r"[^/?#]*")


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL. Raises ValueError for an invalid URL or a host that is too long for DNS.

    Without a length check, Python would normalize a host of any length, in quadratic time.
    """
    authority = _AUTHORITY.match(url.partition("//")[2])
    if authority is not None and len(authority[0]) > LONGEST_NAME + len(":65535"):
        raise ValueError("a host that is too long")
    return urlsplit(url)


def with_localhost(url: str) -> str:
    """Replace 127.0.0.1 with `localhost` in a URL, because passkeys do not work with IP addresses."""
    return url.replace("//127.0.0.1", "//localhost", 1)


@lru_cache(1024)  # all pages of a shop need the same origins
def origin_of(url: str) -> str:
    """Return `scheme://host`, with `:port` if the URL has one, or "" if the host is not valid in DNS."""
    try:
        parts = split_url(url)
        host, port = host_of(url), parts.port
    except ValueError:
        return ""
    named = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{named}{f':{port}' if port else ''}" if host else ""


def host_of(url: str) -> str:
    """Return the host in ASCII, such as `xn--bcher-kva.example`, or "" if it is not valid in DNS."""
    try:
        written = split_url(url).hostname or ""
        if not written or len(written) > LONGEST_NAME:
            return ""
        host = yarl.URL.build(scheme="https", host=written).raw_host or ""
    except ValueError:
        return ""
    labels = host.removesuffix(".").split(".")
    fits = len(host) <= LONGEST_NAME and all(0 < len(label) <= LONGEST_LABEL for label in labels)
    return host if host.isascii() and fits else ""
