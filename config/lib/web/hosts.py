"""Host names that are not on the public internet, refused both for a merchant's shop and for its endpoint."""

FORBIDDEN_SUFFIXES = (
    ".local",
    ".internal",
    ".localhost",
    ".localdomain",
    ".onion",
    ".home.arpa",
    ".lan",
    ".intranet",
    ".corp",
)
METADATA_NAMES = frozenset({"metadata.goog", "metadata.azure.com", "metadata.tencentyun.com"})


def is_reserved(host: str) -> bool:
    """Return whether a lower-case ASCII name is of this machine, a private network or a cloud's metadata."""
    name = host.removesuffix(".")
    return name == "localhost" or name.endswith(FORBIDDEN_SUFFIXES) or name in METADATA_NAMES
