"""The sandbox bank as a peer of its own: `gunicorn --config python:tests.bank.process`.

With books of its own (DATABASE_URL), and BANK_URL set for everybody else, it is to web and workers what a real
provider is: another machine on the network that can be slow, break off, or be down. `make chaos` runs it so.
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
threads = int(os.environ.get("BANK_THREADS", "32"))  # a call that shall hang takes one
control_socket_disable = True
SECONDS_BETWEEN_NOTIFICATIONS = 0.2

application = get_wsgi_application()


def post_worker_init(worker: Any) -> None:
    """Send notifications for as long as the process lives."""
    threading.Thread(target=_send_notifications, name="notifications", daemon=True).start()


def _send_notifications() -> None:
    """What goes wrong once goes right the next time: the bank's books remember what is due."""
    send_due = import_string(
        "payments.providers.sandbox.notifications.send_due"
    )  # models want the apps to be there
    while True:
        time.sleep(SECONDS_BETWEEN_NOTIFICATIONS)
        try:
            send_due()
        except Error:
            close_old_connections()
