"""Functions with which the tests read the Dockerfile, compose.yaml and the systemd units."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "config" / "deploy"
PARTS = ("web", "worker", "beat")
HOME = "/srv/checkout"


def dockerfile() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word and word != "#"]


def arguments_of(instruction: str) -> list[str]:
    return [rest for word, rest in dockerfile() if word == instruction]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return found


def our_services() -> dict[str, Any]:
    """Return the services of compose.yaml that run our image, by name."""
    services: dict[str, Any] = compose()["services"]
    return {
        name: each
        for name, each in services.items()
        if each["image"].startswith("merchant-checkout-service:")
    }


def command(part: str) -> list[str]:
    """Return the command that starts one of our containers."""
    words: list[str] = compose()["services"][part].get("command") or json.loads(arguments_of("CMD")[-1])
    return words


def unit(part: str) -> dict[str, str]:
    (path,) = DEPLOY.glob(f"checkout-{part}*.service")
    lines = path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def unit_command(part: str) -> list[str]:
    return shlex.split(unit(part)["ExecStart"])


def shipped() -> list[str]:
    """Return the paths that .dockerignore does not exclude from the image."""
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert all((ROOT / path).exists() for path in let_in)
    return let_in


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def variables_of_operators() -> set[str]:
    """Return the environment variables that the table in docs/operate.md lists."""
    table = (ROOT / "docs" / "operate.md").read_text().partition("## Settings")[2]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([A-Z_]+)`", cell)}
