"""A machine with an empty Debian 13 and its own systemd, in a container of systemd-nspawn.

The container needs no container engine and no image, because debootstrap fetches Debian's base packages. Root is
required. While packages are installed, the machine uses this host's network. After its start, it has only a loopback
device.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.config.deploy.package import ROOT
from tests.journeys.polling import until

DEBIAN, MIRROR = "trixie", "http://deb.debian.org/debian"
# debootstrap installs the packages of priority "required". A machine needs systemd too.
BASE_PACKAGES = "systemd,systemd-sysv,dbus,ca-certificates"
# The repository and this host's certificates, mounted in the machine.
REPOSITORY, CERTIFICATES = "/repository", "/etc/ssl/host.crt"
OUTSIDE = Path("/etc/ssl/certs/ca-certificates.crt")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHELL = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
NSPAWN = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit"]


class Machine:
    """The machine whose files are in `root`. `type_before_start` and `type` run commands as root."""

    def __init__(self, root: Path, name: str = "debian") -> None:
        self.root, self.name = root, name
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._init = 0

    def type_before_start(self, commands: str) -> str:
        """Run commands before any service runs, with access to package registries. Return their output."""
        words = [*NSPAWN, f"--directory={self.root}", "--resolv-conf=copy-host"]
        words += [f"--bind-ro={ROOT}:{REPOSITORY}", f"--bind-ro={OUTSIDE}:{CERTIFICATES}"]
        for name, value in (SHELL | {"PIP_CERT": CERTIFICATES}).items():
            words.append(f"--setenv={name}={value}")
        return _output([*words, *_shell(commands)])

    def type(self, commands: str) -> str:
        """Run commands on the running machine, with `set -euo pipefail`. Return their output."""
        return _output(self.inside(*_shell(commands)))

    def inside(self, *command: str) -> list[str]:
        """Return the command line that runs a command in all namespaces of the machine."""
        variables = [f"{name}={value}" for name, value in SHELL.items()]
        return ["nsenter", "--target", str(self._init), "--all", "env", "-i", *variables, *command]

    def start(self, bridge: str = "", address: str = "") -> None:
        """Boot the machine, and wait until systemd has started all its units.

        The machine gets the address in the bridge's network. Without a bridge, it has only a loopback device.
        """
        words = [*NSPAWN, f"--machine={self.name}", f"--directory={self.root}", "--boot", "--console=pipe"]
        words.append(f"--network-bridge={bridge}" if bridge else "--private-network")
        environment = os.environ | {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}
        self._nspawn = nspawn = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._init = until(lambda: _first_child(nspawn), within=20, what="the machine's systemd")
        if bridge:
            until(
                lambda: _first_child(nspawn) and self._ip("link", "show", "host0"),
                within=20,
                what="a network",
            )
            assert self._ip("addr", "add", f"{address}/24", "dev", "host0")
            assert self._ip("link", "set", "host0", "up")
        until(self._is_running, within=90, what="a machine whose units have started")

    def cut_power(self) -> None:
        """End all processes of the machine at once, and remove it from the network."""
        assert self._nspawn
        os.kill(self._init, signal.SIGKILL)  # the kernel ends all processes of the namespace
        self._nspawn.wait(30)
        self._nspawn = None

    def shut_down(self) -> None:
        """Power the machine off, if it runs."""
        if self._nspawn:
            self._nspawn.send_signal(signal.SIGTERM)
            self._nspawn.wait(90)
            self._nspawn = None

    def _ip(self, *words: str) -> bool:
        """Run `ip` in the machine's network.

        The program is this host's, because Debian's base packages do not include it.
        """
        command = ["nsenter", "--target", str(self._init), "--net", "ip", *words]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _is_running(self) -> bool:
        words = self.inside("systemctl", "is-system-running")
        state = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        assert state != "degraded", self.type("systemctl --failed --no-pager")
        return state == "running"


@contextlib.contextmanager
def empty() -> Iterator[Machine]:
    """Make a machine with Debian's base packages, and delete it when the block ends."""
    assert os.getuid() == 0, "This test makes a container of systemd-nspawn, which needs root."
    folder = Path(tempfile.mkdtemp(prefix="checkout-debian-"))
    try:
        _output(
            [
                "debootstrap",
                "--variant=minbase",
                f"--include={BASE_PACKAGES}",
                DEBIAN,
                str(folder / "root"),
                MIRROR,
            ]
        )
        yield Machine(folder / "root")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def copied(machine: Machine, name: str, folder: Path) -> Iterator[Machine]:
    """Make a second machine with the same files. It writes its own changes to `folder`."""
    upper, work, merged = (folder / name / part for part in ("changes", "work", "root"))
    for made in (upper, work, merged):
        made.mkdir(parents=True)
    options = f"lowerdir={machine.root},upperdir={upper},workdir={work}"
    _output(["mount", "-t", "overlay", "overlay", "-o", options, str(merged)])
    copy = Machine(merged, name)
    try:
        yield copy
    finally:
        copy.shut_down()
        _output(["umount", str(merged)])


@contextlib.contextmanager
def bridge(name: str) -> Iterator[str]:
    """Make a network for machines, in which this host has no address. Yield its name."""
    _output(["ip", "link", "add", name, "type", "bridge"])
    try:
        _output(["ip", "link", "set", name, "up"])
        yield name
    finally:
        _output(["ip", "link", "delete", name])


def _shell(commands: str) -> list[str]:
    return ["bash", "-euo", "pipefail", "-c", commands]


def _output(words: list[str]) -> str:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[-1][:400]}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def _first_child(nspawn: subprocess.Popen[bytes]) -> int:
    """Return the process id of the machine's systemd, or 0 while a different program still prepares its start."""
    if nspawn.poll() is not None:
        raise AssertionError(nspawn.communicate()[1].decode())
    children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children").read_text().split()
    if children and Path(f"/proc/{children[0]}/comm").read_text() == "systemd\n":
        return int(children[0])
    return 0
