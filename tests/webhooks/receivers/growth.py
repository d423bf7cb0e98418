"""A program that measures how much memory a process needs for ten simultaneous POSTs to a URL.

Usage: `growth CERTIFICATE URL...`, with the file of a certificate to trust, and URLs on this machine. The
program prints the KiB for each URL as JSON. The first URL is only a warm-up. Linux records the maximum memory
of a process. The program resets this record before the POSTs to each URL.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

from tests.webhooks.receivers.receiving import Names
from webhooks import transport

AT_ONCE = 10  # the maximum number of attempts in flight at one endpoint
RESET_HIGH_WATER = "5"


def status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


async def growth(pool: transport.Pool, url: str) -> int:
    Path("/proc/self/clear_refs").write_text(RESET_HIGH_WATER)
    before = status("VmRSS")
    await asyncio.gather(*(transport.post(pool, url, {}, b"{}") for _ in range(AT_ONCE)))
    return status("VmHWM") - before


async def main(trusted: str, *urls: str) -> None:
    tls = transport.tls_context()
    tls.load_verify_locations(trusted)
    async with transport.open_pool(allow_loopback=True, tls=tls, names=Names(["127.0.0.1"])) as pool:
        json.dump([await growth(pool, url) for url in urls], sys.stdout)


if __name__ == "__main__":
    transport.run(main(*sys.argv[1:]))
