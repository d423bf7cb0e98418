"""Names of hosts that lead nowhere on the public internet, whoever gives them: a merchant's shop or its endpoint."""

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
    """Whether a name, lower case in ASCII, is of this machine, of a private network or of a cloud's metadata."""
    name = host.removesuffix(".")
    return name == "localhost" or name.endswith(FORBIDDEN_SUFFIXES) or name in METADATA_NAMES
