"""How gunicorn serves: a process a core, with as many threads as docs/operate.md reckons for its slots."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings

bind = "127.0.0.1:8000"
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
worker_class = "config.web.Worker"
threads = 3 * (settings.PROVIDER_SLOTS + settings.CAPTURE_SLOTS) + 40
preload_app = True  # a process that died is back at once, since what it runs is loaded already
keepalive = 30
graceful_timeout = 20
worker_tmp_dir = "/dev/shm"  # noqa: S108 - its sign of life is in memory, also where nothing else may be written
control_socket_disable = True
