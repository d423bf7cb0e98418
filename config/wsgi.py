"""The WSGI application of the web processes."""

import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config import startup_checks, version
from config.lib.web.bodies import CountedBodies
from config.variables import startup
from hosted_page.sms import senders

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = CountedBodies(
    get_wsgi_application(),
    largest=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
    larger={settings.LOGO_PATH: settings.LARGEST_UPLOAD},
)
version.announce("web")
with startup.refusals_printed():
    startup_checks.require_valid_database()
    senders.require_sender()
# Import the views now. Otherwise, the first request to a process would wait for the import.
list(get_resolver().url_patterns)
gc.collect()
gc.freeze()  # loaded code stays in memory as long as the process, so the collector can skip it
