"""Runs a process in a separate network, in which hosts have public names and addresses outside private ranges."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

SERVICE, SHOP = "checkout.example", "shop.example"
STRIPE = ("api.stripe.com", "js.stripe.com", "hooks.stripe.com")
TWILIO = "api.twilio.com"
HOSTS = {name: f"11.0.0.{number}" for number, name in enumerate((SERVICE, SHOP, *STRIPE, TWILIO), start=1)}
# The network has only a loopback interface, so it is isolated from the machine's network.
ENTER = (
    "set -e; ip link set lo up; "
    + "; ".join(f"ip address add {address}/32 dev lo" for address in HOSTS.values())
    + '; mount --bind "$1" /etc/hosts; shift; exec "$@"'
)
NEEDED = {"unshare": "util-linux", "ip": "iproute2", "nginx": "nginx-light"}


def command(folder: Path, inner: Sequence[str]) -> list[str]:
    """Return a command that runs `inner` in a separate network. Fail if a required program is missing."""
    missing = [package for tool, package in NEEDED.items() if shutil.which(tool) is None]
    assert not missing, f"Debian's packages {missing} are needed: make tools installs them."
    hosts = folder / "hosts"
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in HOSTS.items())]
    hosts.write_text("\n".join(lines) + "\n")
    as_nobody_else = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return ["unshare", *as_nobody_else, "--net", "--mount", "sh", "-c", ENTER, "sh", str(hosts), *inner]
