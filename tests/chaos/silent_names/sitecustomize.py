"""Makes a process use only the name server at SILENT_NAMES (host:port), which never answers."""

import os
from typing import Any

import aiodns

HOST, _, PORT = os.environ["SILENT_NAMES"].partition(":")
_Resolver = aiodns.DNSResolver


class SilentResolver(_Resolver):
    """A resolver that queries only this name server, and waits for an answer for up to a minute."""

    def __init__(self, **options: Any) -> None:
        servers = {"nameservers": [HOST], "udp_port": int(PORT), "tcp_port": int(PORT)}
        super().__init__(**options | servers | {"timeout": 60.0, "tries": 1})


aiodns.DNSResolver = SilentResolver  # type: ignore[assignment,misc]
