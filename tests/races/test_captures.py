"""Of eight simultaneous captures in one process, one is sent, one waits, and the others are refused at once."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from checkout import captures
from checkout.models import Checkout
from checkout.states import OperationInProgress
from payments.provider import Outcome
from payments.providers.sandbox.adapter import SandboxProvider
from tests.factories import CAUSE


@pytest.mark.django_db(transaction=True)
@pytest.mark.rule("capture.join")
def test_of_eight_captures_one_is_sent_one_waits_and_six_are_refused_at_once(
    held: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The idempotency chapter of the guide describes this behaviour."""
    send, refused, all_refused = SandboxProvider.capture, list[bool](), threading.Event()

    def send_after_the_refusals(*arguments: Any, **more: Any) -> Outcome:
        assert all_refused.wait(5)
        return send(*arguments, **more)

    def attempt(_: int) -> str:
        try:
            return captures.capture(held.merchant, held.pk, cause=CAUSE).status
        except OperationInProgress:
            refused.append(True)
            if len(refused) == 6:
                all_refused.set()
            return "operation_in_progress"
        finally:
            connection.close()

    monkeypatch.setattr(SandboxProvider, "capture", send_after_the_refusals)
    with ThreadPoolExecutor(8) as pool:
        assert Counter(pool.map(attempt, range(8))) == {"captured": 2, "operation_in_progress": 6}
