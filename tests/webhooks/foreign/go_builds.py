"""Builds the Go programs that merchants download. Each program is built once for all processes and test runs."""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from config.local import environment

FOLDER = environment.FOLDER / "go"
STOPPED_CLOCK = Path(__file__).with_name("stopped_clock.go")


@functools.cache
def build(program: Path) -> Path:
    """Return the binary of a Go program. The first process builds it, and all other processes wait.

    The program must be in gofmt's format. A receiver is built together with stopped_clock.go.
    """
    sources = [program, STOPPED_CLOCK] if program.stem == "receiver" else [program]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    binary = FOLDER / f"{program.stem}-{digest}" / program.stem
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            _build(sources, binary)
    return binary


def _build(sources: list[Path], binary: Path) -> None:
    for earlier in FOLDER.glob(f"{binary.name}-*"):
        shutil.rmtree(earlier)
    binary.parent.mkdir()
    names = [Path(shutil.copy(path, binary.parent)).name for path in sources]
    fresh = f"{binary.name}.tmp"
    assert output(binary.parent, "gofmt", "-d", *names) == ""
    output(binary.parent, "go", "build", "-o", fresh, *names)
    (binary.parent / fresh).rename(binary)


def output(folder: Path, *command: str) -> str:
    """Run a Go command in a folder, and return its output. If the command fails, show its errors."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), "GO111MODULE": "off", "GOFLAGS": ""}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
