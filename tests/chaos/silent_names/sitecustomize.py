"""For a process whose name servers never answer: the one that SILENT_NAMES leads to, as host:port."""

import os
from typing import Any

import aiodns

HOST, _, PORT = os.environ["SILENT_NAMES"].partition(":")
_Resolver = aiodns.DNSResolver


class SilentResolver(_Resolver):
    """Asks that name server alone, and waits for it."""

    def __init__(self, **options: Any) -> None:
        servers = {"nameservers": [HOST], "udp_port": int(PORT), "tcp_port": int(PORT)}
        super().__init__(**options | servers | {"timeout": 60.0, "tries": 1})


aiodns.DNSResolver = SilentResolver  # type: ignore[assignment,misc]
