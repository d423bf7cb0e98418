"""The pumps, with the titles that operators see.

A pump that an operator starts runs in the process that serves the operator's request.
"""

import time

from django.conf import settings
from django.utils.module_loading import import_string

from config import schedule
from webhooks import delivery_sender
from webhooks.tasks import DRAIN_SECONDS

# The titles of the pumps that an operator can run, keyed by the pump's name. Pumps that run every second come
# first.
TITLES = {
    **schedule.PUMPS,
    **schedule.HOURLY,
    **{name: title for name, (title, _) in schedule.CALENDAR.items() if title},
}
SENDING_SECONDS = 3.0


def run(name: str) -> float:
    """Run a pump from TITLES. Return the seconds that it took. Raises the pump's exceptions."""
    started = time.monotonic()
    if name == schedule.DELIVER_DUE:
        send_webhooks(SENDING_SECONDS)
    else:
        import_string(name)()
    return time.monotonic() - started


def send_webhooks(seconds: float) -> None:
    """Send due webhooks from this process for `seconds`. Then stop when all results are recorded."""
    sender = delivery_sender.Sender(slots=settings.WEBHOOK_SLOTS, allow_loopback=settings.WEBHOOK_LOOPBACK)
    sender.start()
    time.sleep(seconds)
    sender.stop(DRAIN_SECONDS)
