"""The sandbox bank as a separate process: `gunicorn --config python:tests.bank.process`.

The bank keeps its books in its own database (DATABASE_URL). All other processes reach it at BANK_URL. It
behaves like a real provider on the network: it can be slow, break a connection, or be down. `make chaos` runs
it this way.
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
# Each hanging call occupies a thread.
threads = int(os.environ.get("BANK_THREADS", "32"))
control_socket_disable = True
SECONDS_BETWEEN_NOTIFICATIONS = 0.2

application = get_wsgi_application()


def post_worker_init(worker: Any) -> None:
    """Send notifications for as long as the process lives."""
    threading.Thread(target=_send_notifications, name="notifications", daemon=True).start()


def _send_notifications() -> None:
    """Send due notifications again and again.

    After a database error, the loop only opens a new connection: the bank's books still list what is due.
    """
    # Imported here, because models can be imported only after Django has loaded the apps.
    send_due = import_string("payments.providers.sandbox.notifications.send_due")
    while True:
        time.sleep(SECONDS_BETWEEN_NOTIFICATIONS)
        try:
            send_due()
        except Error:
            close_old_connections()
