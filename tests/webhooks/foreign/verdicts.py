"""Runs Stripe's and Standard Webhooks' libraries for Python and Node, and returns their verdicts."""

import contextlib
import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import standardwebhooks
import stripe

HERE = Path(__file__).parent
TOLERANCE_SECONDS = 300  # without a tolerance, verify_header does not check the time
STRIPE = ("stripe for Python", "stripe for Node")
STANDARD = ("standardwebhooks for Python", "standardwebhooks for Node")
ALL = STRIPE + STANDARD
# The calls that the documentation shows. This module and verify.mjs make the same calls.
DOCUMENTED = {
    "stripe for Python": "stripe.WebhookSignature.verify_header(body, header, secret, 300)",
    "stripe for Node": "stripe.webhooks.signature.verifyHeader(body, header, secret, 300)",
}


class Case(NamedTuple):
    """A request that a receiver got, and the receiver's only secret. Header names are in lower case."""

    headers: Mapping[str, str]
    body: bytes
    secret: str


class Verifiers:
    """All verifiers. Those for Node run in one process, which reads cases and writes verdicts over pipes."""

    def __init__(self, node: "subprocess.Popen[str]") -> None:
        self._node = node

    def accept(
        self, cases: Sequence[Case], *, now: int | None = None, tolerance: int | None = TOLERANCE_SECONDS
    ) -> dict[str, list[bool]]:
        """For each verifier, return whether it accepts each case at the Unix time `now`.

        If `now` is None, the real time is used. If `tolerance` is None, Stripe's libraries are called without
        a tolerance.
        """

        def verify_by_stripe(case: Case) -> None:
            header = case.headers.get("x-service-signature")
            stripe.WebhookSignature.verify_header(case.body, header, case.secret, tolerance)

        with judged_at(now):
            verdicts = {
                "stripe for Python": [_accepts(verify_by_stripe, case) for case in cases],
                "standardwebhooks for Python": [_accepts(_verify_by_standard, case) for case in cases],
            }
        return verdicts | self._ask_node(cases, now, tolerance)

    def _ask_node(
        self, cases: Sequence[Case], now: int | None, tolerance: int | None
    ) -> dict[str, list[bool]]:
        assert self._node.stdin and self._node.stdout
        encoded = [case._asdict() | {"body": b64encode(case.body).decode()} for case in cases]
        question = {"now": now, "tolerance": tolerance, "cases": encoded}
        print(json.dumps(question), file=self._node.stdin, flush=True)
        answer: dict[str, list[bool]] = json.loads(self._node.stdout.readline())
        return answer


@contextlib.contextmanager
def running() -> Iterator[Verifiers]:
    """Run the verifiers for the duration of the block."""
    command = ["node", str(HERE / "verify.mjs")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.__stderr__, text=True
    ) as node:
        yield Verifiers(node)
        assert node.stdin
        node.stdin.close()


@contextlib.contextmanager
def judged_at(now: int | None) -> Iterator[None]:
    """For the duration of the block, set the clock of the two Python libraries to `now`, unless it is None."""
    if now is None:
        yield
        return
    clock = mock.Mock(wraps=datetime)
    clock.now.return_value = datetime.fromtimestamp(now, tz=UTC)
    with (
        mock.patch("standardwebhooks.webhooks.datetime", clock),
        mock.patch("time.time", return_value=float(now)),
    ):
        yield


def _verify_by_standard(case: Case) -> None:
    standardwebhooks.Webhook(case.secret).verify(case.body, dict(case.headers))


def _accepts(verify: Callable[[Case], None], case: Case) -> bool:
    try:
        verify(case)
    except Exception:  # for some headers, the libraries raise errors that they do not define
        return False
    return True
