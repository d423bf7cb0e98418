"""The running version, and the first log line, which names it."""

from collections.abc import MutableMapping
from typing import Any

import structlog

VERSION = "1.0.0"  # as in pyproject.toml; CHANGELOG.md lists the changes of each version


def add(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Return a log line with the running version added."""
    line["version"] = VERSION
    return line


def announce(part: str) -> None:
    """Log which part of the service starts, and in which version."""
    structlog.get_logger("service").info("begins", part=part)
