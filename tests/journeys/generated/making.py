"""Generates API clients from the OpenAPI document with the documented commands, and type-checks them."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from portal.developer_docs import guide

HERE = Path(__file__).parent
BINARIES = HERE / "node_modules/.bin"
NUMBERED = re.compile(r"^class (\w*\d\w*)", re.MULTILINE)
PACKAGE = "merchant_checkout_service_client"
# mypy's findings in this file are ignored. The file is the same for every document, and mypy reports an error
# in its code that closes a connection.
OWN = f"{PACKAGE}/client.py:"


def run(*command: str, within: Path, **more: str) -> str:
    """Run a command, fail unless it exits with 0, and return its output."""
    path = f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path} | more
    done = subprocess.run(command, check=False, cwd=within, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def documented_command(program: str, base_url: str) -> list[str]:
    """Return the guide's command with which this program generates a client."""
    (line,) = re.findall(rf"^(?:npx )?({program} .*{{base_url}}.*)$", guide.GUIDE, re.MULTILINE)
    return str(line).replace("{base_url}", base_url).split()


def python(folder: Path, *command: str) -> Path:
    """Generate the Python client in the folder, fail on any warning, and return its package."""
    run(*command, "--fail-on-warning", within=folder)
    return folder / PACKAGE.replace("_", "-") / PACKAGE


def of_document(document: dict[str, Any], folder: Path) -> Path:
    """Generate the Python client from a document in a file, and return its package."""
    (folder / "openapi.json").write_text(json.dumps(document))
    return python(folder, "openapi-python-client", "generate", "--path=openapi.json")


def numbered(package: Path) -> list[str]:
    """Return the classes with a number in their name.

    The generator numbers the classes for schemas that have no name in the document.
    """
    return sorted(name for path in package.rglob("*.py") for name in NUMBERED.findall(path.read_text()))


def lines(package: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in package.rglob("*.py"))


def python_shop(base_url: str, folder: Path) -> list[str]:
    """Generate the Python client, check the client and shop.py with mypy, and return the shop's command."""
    beside = python(folder, *documented_command("openapi-python-client", base_url)).parent
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
    """Generate the TypeScript types, compile shop.ts with them, and return the shop's command."""
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to((HERE / "node_modules").resolve())
    for name in ("shop.ts", "tsconfig.json"):
        shutil.copy(HERE / name, folder)
    run(*documented_command("openapi-typescript", base_url), within=folder)
    run("tsc", "--project", ".", within=folder)
    return ["node", str(folder / "out/shop.js")]
