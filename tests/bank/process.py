"""The sandbox bank as a separate process: `gunicorn --config python:tests.bank.process`.

The bank has its own books (DATABASE_URL), and all other processes have BANK_URL. To web and workers, it is
like a real provider: another machine on the network that can be slow, break off, or be down. `make chaos`
runs it this way.
"""

import os
import threading
import time
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.db import Error, close_old_connections
from django.utils.module_loading import import_string

bind = f"127.0.0.1:{os.environ['BANK_PORT']}"
wsgi_app = "tests.bank.process:application"
worker_class = "gthread"
threads = int(os.environ.get("BANK_THREADS", "32"))  # a call that hangs takes one
control_socket_disable = True
SECONDS_BETWEEN_NOTIFICATIONS = 0.2

application = get_wsgi_application()


def post_worker_init(worker: Any) -> None:
    """Send notifications for as long as the process lives."""
    threading.Thread(target=_send_notifications, name="notifications", daemon=True).start()


def _send_notifications() -> None:
    """Send due notifications again and again.

    An error needs no other handling, because the bank's books remember what is due.
    """
    send_due = import_string(
        "payments.providers.sandbox.notifications.send_due"
    )  # imported here, because models need loaded apps
    while True:
        time.sleep(SECONDS_BETWEEN_NOTIFICATIONS)
        try:
            send_due()
        except Error:
            close_old_connections()
