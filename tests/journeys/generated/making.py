"""Making clients of the API's document as docs say, and judging them by strict compilers."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from config.openapi import guide

HERE = Path(__file__).parent
BINARIES = HERE / "node_modules/.bin"
NUMBERED = re.compile(r"^class (\w*\d\w*)", re.MULTILINE)
PACKAGE = "merchant_checkout_service_client"
# The generator's own text, the same for every document; mypy finds fault with how it ends a connection.
OWN = f"{PACKAGE}/client.py:"


def run(*command: str, within: Path, **more: str) -> str:
    """Return what a command prints; it must exit 0."""
    path = f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path} | more
    done = subprocess.run(command, check=False, cwd=within, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def told(program: str, base_url: str) -> list[str]:
    """The command that the guide tells to generate a client by this program."""
    (line,) = re.findall(rf"^(?:npx )?({program} .*{{base_url}}.*)$", guide.GUIDE, re.MULTILINE)
    return str(line).replace("{base_url}", base_url).split()


def python(folder: Path, *command: str) -> Path:
    """Make the client for Python in the folder, without a warning, and return its package."""
    run(*command, "--fail-on-warning", within=folder)
    return folder / PACKAGE.replace("_", "-") / PACKAGE


def of_document(document: dict[str, Any], folder: Path) -> Path:
    """Make the client for Python of a document that nobody serves and return its package."""
    (folder / "openapi.json").write_text(json.dumps(document))
    return python(folder, "openapi-python-client", "generate", "--path=openapi.json")


def numbered(package: Path) -> list[str]:
    """The classes whose names hold a number, since the document gives them none of their own."""
    return sorted(name for path in package.rglob("*.py") for name in NUMBERED.findall(path.read_text()))


def lines(package: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in package.rglob("*.py"))


def python_shop(base_url: str, folder: Path) -> list[str]:
    """Make the client, have mypy judge it and the shop that uses it; return the command that runs the shop."""
    beside = python(folder, *told("openapi-python-client", base_url)).parent
    shutil.copy(HERE / "shop.py", beside)
    (beside / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    judged = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--no-error-summary", PACKAGE, "shop.py"],
        check=False,
        cwd=beside,
        capture_output=True,
        text=True,
    )
    assert judged.stderr == ""
    faults = [line for line in judged.stdout.splitlines() if not line.startswith(OWN)]
    assert not faults, "\n".join(faults)
    return [sys.executable, str(beside / "shop.py")]


def typescript_shop(base_url: str, folder: Path) -> list[str]:
    """Make the types, have tsc compile the shop that uses them; return the command that runs the shop."""
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to((HERE / "node_modules").resolve())
    for name in ("shop.ts", "tsconfig.json"):
        shutil.copy(HERE / name, folder)
    run(*told("openapi-typescript", base_url), within=folder)
    run("tsc", "--project", ".", within=folder)
    return ["node", str(folder / "out/shop.js")]
