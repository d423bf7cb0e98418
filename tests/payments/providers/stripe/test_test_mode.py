"""Runs the tests for Stripe's test mode (STRIPE_TEST_KEY) with the test double instead of Stripe."""

import os
import subprocess
import sys

import pytest

from tests.payments.stripe_peer.remote import ROOT, Remote


@pytest.mark.long
@pytest.mark.rule("provider.alike")
def test_the_test_mode_suite_passes_against_the_stripe_peer(running_peer: Remote) -> None:
    running_peer.switch("clear")
    suite = ["-m", "pytest", "-n", "0", "tests/payments/providers/conformance", "-k", "mode"]
    key = {"STRIPE_TEST_KEY": "sk_test_peer", "STRIPE_TEST_API": running_peer.address}
    ours = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("PYTEST_", "DATABASE_", "REDIS_"))
    }
    ran = subprocess.run(
        [sys.executable, *suite],
        cwd=ROOT,
        env=ours | key,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    passed = int(ran.stdout.split(" passed")[0].split()[-1])
    assert passed > 80 and "skipped" not in ran.stdout
