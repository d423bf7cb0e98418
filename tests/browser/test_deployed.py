"""The environments sandbox and production, with TLS, public host names, and card fields from other origins.

The services and the browsers that visit them run in a separate network (tests/browser/deployed).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.deployed import network
from tests.journeys.service import ROOT, bare_environment

pytestmark = [pytest.mark.journey, pytest.mark.long]
WALKS = "tests/browser/deployed/walks.py"


@pytest.mark.rule("provider.live_keys", "provider.registered")
@pytest.mark.parametrize("kind", ["sandbox", "production"])
def test_every_walk_ends_well(kind: str, tmp_path: Path) -> None:
    inner = [sys.executable, "-m", "pytest", "-n", "0", WALKS]
    variables = bare_environment(WALKED=kind, WALK_FOLDER=str(tmp_path))
    variables |= {name: os.environ[name] for name in ("CHROMIUM",) if name in os.environ}
    done = subprocess.run(
        network.command(tmp_path, inner), env=variables, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
