"""Host names outside the public internet. They are refused in a merchant's return URLs and webhook URLs."""

# The beginnings of URLs that are also accepted in the environment `local`, as errors and the documentation name them.
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
