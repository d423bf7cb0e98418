"""Host names that do not belong to the public internet. A merchant's return URLs and webhook URLs may not use them."""

# The beginnings of URLs that the environment `local` accepts too. Errors and the documentation show this text.
HERE = "http://localhost or http://127.0.0.1"
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
    """Return whether a lower-case ASCII name belongs to this machine, a private network or cloud metadata."""
    name = host.removesuffix(".")
    return name == "localhost" or name.endswith(FORBIDDEN_SUFFIXES) or name in METADATA_NAMES
