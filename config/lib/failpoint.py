"""Fail points, at which a test can kill, fail or delay a process. Inert unless settings.FAIL_POINTS names a folder.

To arm a point, a test puts a file into the folder. Its name is the point's, as specific as the test needs
(`after_call`, `after_call.capture`, `after_call.capture.<checkout_uuid>`); its text is what happens there,
once: `kill`, `raise`, or `sleep 3`.
"""

import os
import signal
import time
from pathlib import Path

from django.conf import settings

POINTS = frozenset(
    {
        "before_call",  # .<operation's kind>.<checkout_uuid>: the intent is committed, the provider not asked yet
        "after_call",  # the same: the provider has answered, nothing is recorded
        "before_look_up",  # the same: the provider is not asked yet what became of it
        "after_look_up",  # the same: it has said so, nothing is recorded
        "before_commit",  # the same: recorded, not committed
        "after_commit",  # the same: committed, not answered
        "event_written",  # .<event's type>.<checkout_uuid>: in the outbox, not committed
        "event_committed",  # the same: committed, the senders not woken
        "key_claimed",  # an Idempotency-Key is claimed, the verb not begun
        "answer_made",  # the verb has ended, its answer is not kept under the key
        "answer_kept",  # it is kept, the caller has not got it
        "sms_claimed",  # .<SMS message's id>: it is claimed for good, the carrier has not heard of it
        "webhook_answered",  # .<delivery's id>: the receiver has answered, nothing is recorded
        "webhook_recorded",  # the same: the attempt's end is written, not committed
    }
)


class Failed(Exception):
    """What `raise` raises."""


def reach(point: str, *details: object) -> None:
    """Do what is armed for this point, if anything. Raises Failed."""
    if not settings.FAIL_POINTS:
        return
    if point not in POINTS:
        raise ValueError(f"{point} is no fail point.")
    for length in range(len(details), -1, -1):
        _act(".".join([point, *map(str, details[:length])]))


def _act(name: str) -> None:
    taken = Path(settings.FAIL_POINTS) / f".{name}.{os.getpid()}.{time.monotonic_ns()}"
    try:
        (Path(settings.FAIL_POINTS) / name).rename(taken)  # which only one process can
    except FileNotFoundError:
        return
    act, _, seconds = taken.read_text().partition(" ")
    taken.unlink()
    if act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "raise":
        raise Failed(name)
    time.sleep(float(seconds))
