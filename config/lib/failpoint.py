"""Fail points: places in the code where a test can kill, fail or delay a process.

They are inactive unless settings.FAIL_POINTS names a folder.

To arm a point, a test writes a file into the folder. The file's name is the name of the point, with as many
details as the test needs (`after_call`, `after_call.capture`, `after_call.capture.<checkout_uuid>`). The
file's text is `kill`, `raise`, or `sleep 3`. Only the first process that reaches the point runs the fault.
"""

import os
import signal
import time
from pathlib import Path

from django.conf import settings

# Each comment lists the details that can follow the point's name, and then says what has happened when a process
# reaches the point.
POINTS = frozenset(
    {
        "before_call",  # .<operation's kind>.<checkout_uuid>: the intent is committed, the call not made yet
        "after_call",  # same details: the provider has answered, the outcome is not recorded
        "before_look_up",  # same details: the provider has not received a query for the outcome yet
        "after_look_up",  # same details: the provider has reported the outcome, but it is not recorded
        "before_commit",  # same details: the outcome is recorded, but not committed
        "after_commit",  # same details: the outcome is committed, the caller has no answer yet
        "event_written",  # .<event's type>.<checkout_uuid>: the event is in the outbox, not committed
        "event_committed",  # same details: the event is committed, the senders are not woken
        "key_claimed",  # an Idempotency-Key is claimed, the call has not done any work
        "answer_made",  # the call has done its work, its answer is not stored under the key
        "answer_kept",  # the answer is stored, the caller has not received it
        "sms_claimed",  # .<SMS message's id>: it is claimed permanently, but not sent to the carrier
        "webhook_answered",  # .<delivery's id>: the receiver has answered, the answer is not recorded
        "webhook_recorded",  # same details: the attempt's result is recorded, but not committed
    }
)


class Failed(Exception):
    """Raised at a fail point that is armed with `raise`."""


def reach(point: str, *details: object) -> None:
    """Run the fault that a test has armed for this point, if there is one. Raises Failed."""
    if not settings.FAIL_POINTS:
        return
    if point not in POINTS:
        raise ValueError(f"{point} is no fail point.")
    for length in range(len(details), -1, -1):
        _run_armed_fault(".".join([point, *map(str, details[:length])]))


def _run_armed_fault(name: str) -> None:
    claimed = Path(settings.FAIL_POINTS) / f".{name}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        (Path(settings.FAIL_POINTS) / name).rename(claimed)  # only one process can rename the file
    except FileNotFoundError:
        return
    act, _, seconds = claimed.read_text().partition(" ")
    claimed.unlink()
    if act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "raise":
        raise Failed(name)
    time.sleep(float(seconds))
