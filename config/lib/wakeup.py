"""Wake-ups: hints to workers that rows are due. If a wake-up is lost, the work is done a second later.

Rule pump.wake_up.
"""

import queue
import threading
import time
from functools import partial

import structlog
from celery import current_app
from django.db import transaction

log = structlog.get_logger("wakeup")
# A wake-up costs as much as three statements. Because of this pause, one wake-up serves many commits under
# load.
GAP_SECONDS = 0.02
_names: queue.SimpleQueue[str] = queue.SimpleQueue()
_starting = threading.Lock()
_sender: threading.Thread | None = None


def wake_after_commit(task_name: str) -> None:
    """Request a run of the Celery task once the open transaction commits. This function never blocks or raises."""
    transaction.on_commit(partial(_enqueue_task, task_name))


def _enqueue_task(task_name: str) -> None:
    global _sender
    _names.put(task_name)
    with _starting:
        if _sender is None or not _sender.is_alive():
            _sender = threading.Thread(target=_send_forever, name="wakeup", daemon=True)
            _sender.start()


def _send_forever() -> None:
    """Send wake-ups in an endless loop. A separate thread runs it, so no request waits if Redis does not answer."""
    while True:
        names = {_names.get()}
        while not _names.empty():
            names.add(_names.get())
        for name in names:
            try:
                current_app.send_task(name, expires=5, ignore_result=True)
            except Exception as error:
                log.warning("wake-up not sent", task=name, error=type(error).__name__)
        time.sleep(GAP_SECONDS)
