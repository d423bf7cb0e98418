"""The first order, as described in docs/install.md. The test runs the documented commands."""

import json
import re
import subprocess

import pytest

from tests.journeys.merchant import Merchant
from tests.journeys.service import ROOT, bare_environment

pytestmark = pytest.mark.journey
SECTION = (ROOT / "docs" / "install.md").read_text().partition("## 7. ")[2].partition("\n## ")[0]
(_, CREATED, MOVED) = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)


def typed(commands: str, *before: str) -> str:
    """Run commands in a shell that stops at the first error. Return the output."""
    script = "\n".join(["set -euo pipefail", *before, commands])
    return subprocess.run(
        ["bash", "-c", script], env=bare_environment(), capture_output=True, text=True, check=True
    ).stdout


def test_is_created_captured_and_refunded(merchant: Merchant) -> None:
    """The documented shell commands must work. In the test, a sandbox helper makes the customer's payment."""
    known = merchant.credentials
    commands = CREATED.replace("https://pay.example", merchant.base_url)
    commands = commands.replace("client_id=…", f"client_id={known.client_id}")
    commands = commands.replace("client_secret=…", f"client_secret={known.client_secret}")
    created, token = typed(commands + '\necho; echo "$TOKEN"').strip().splitlines()
    checkout = json.loads(created)["data"]
    assert (checkout["status"], checkout["checkout_url"]) == (
        "created",
        f"{merchant.base_url}/pay?id={checkout['checkout_uuid']}",
    )
    merchant.pay(checkout["checkout_uuid"])
    answers = typed(
        MOVED.replace("ID=…", f"ID={checkout['checkout_uuid']}"),
        f"API={merchant.base_url} TOKEN={token}",
    )
    captured, end = json.JSONDecoder().raw_decode(answers)
    read = json.loads(answers[end:])
    assert captured["data"]["status"] == "captured"
    assert read["data"]["status"] in ("refunding", "refunded") and len(read["data"]["refunds"]) == 1
