"""Installs the packages and the code of docs/install.md once, for all tests that use a Debian machine."""

import re
from collections.abc import Iterator

import pytest

from tests.config.deploy import package, pages
from tests.config.deploy.debian import machine
from tests.config.deploy.debian.machine import REPOSITORY, Machine

# The repository has no release yet, so its newest commit is installed.
SOURCE = re.compile(r"--branch v\S+ <where you have it from>")


@pytest.fixture(scope="session")
def installed() -> Iterator[Machine]:
    """Type sections 1 and 2 of docs/install.md, and install the same code again as version 1.1.0."""
    with machine.empty() as made:
        packages = pages.block("install.md", "apt update").partition("\ntimedatectl")[0]
        code = SOURCE.sub(f"{REPOSITORY}/.git", pages.block("install.md", "make install static"))
        later = pages.block("upgrade.md", "make install static").splitlines()[0]
        pooler = pages.block("operate.md", "apt install -y pgbouncer").splitlines()[0]
        made.type_before_start(f"{packages}\n{pooler}")
        made.type_before_start(f"git config --global --add safe.directory {REPOSITORY}/.git\n{code}")
        made.type_before_start(SOURCE.sub(f"{REPOSITORY}/.git", later))
        buyers = package.ROOT / "tests/config/deploy/buyers.py"
        (made.root / "root" / buyers.name).write_text(buyers.read_text())
        yield made
