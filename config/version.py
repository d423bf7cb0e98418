"""The version that runs, and the log's first line, which names it."""

import structlog

VERSION = "0.1.0"  # as in pyproject.toml; what each brought stands in CHANGELOG.md


def announce(part: str) -> None:
    """Say in the log which part of the service begins, in which version."""
    structlog.get_logger("service").info("begins", part=part, version=VERSION)
