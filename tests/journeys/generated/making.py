"""Generates API clients from the OpenAPI document with the documented commands, and checks their types."""

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
# in its code for closing a connection.
OWN = f"{PACKAGE}/client.py:"


def run(*command: str, within: Path, **more: str) -> str:
    """Run a command, and return its output. Fail unless it exits with 0."""
    path = f"{Path(sys.executable).parent}:{BINARIES}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path} | more
    done = subprocess.run(command, check=False, cwd=within, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def documented_command(program: str, base_url: str) -> list[str]:
    """Return the guide's command that generates a client with this program."""
    (line,) = re.findall(rf"^(?:npx )?({program} .*{{base_url}}.*)$", guide.GUIDE, re.MULTILINE)
    return str(line).replace("{base_url}", base_url).split()


def python(folder: Path, *command: str) -> Path:
    """Generate the Python client in the folder, and return its package. Fail on any warning."""
    run(*command, "--fail-on-warning", within=folder)
    return folder / PACKAGE.replace("_", "-") / PACKAGE


def of_document(document: dict[str, Any], folder: Path) -> Path:
    """Generate the Python client from a document in a file, and return the client's package."""
    (folder / "openapi.json").write_text(json.dumps(document))
    return python(folder, "openapi-python-client", "generate", "--path=openapi.json")


def numbered(package: Path) -> list[str]:
    """Return the classes that have a number in their name.

    If a schema has no name in the document, the generator gives its class a name with a number.
    """
    return sorted(name for path in package.rglob("*.py") for name in NUMBERED.findall(path.read_text()))


def lines(package: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in package.rglob("*.py"))


def python_shop(base_url: str, folder: Path) -> list[str]:
    """Generate the Python client, check it and shop.py with mypy, and return the command that runs the shop."""
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
    """Generate the TypeScript types, compile shop.ts with them, and return the command that runs the shop."""
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to((HERE / "node_modules").resolve())
    for name in ("shop.ts", "tsconfig.json"):
        shutil.copy(HERE / name, folder)
    run(*documented_command("openapi-typescript", base_url), within=folder)
    run("tsc", "--project", ".", within=folder)
    return ["node", str(folder / "out/shop.js")]
