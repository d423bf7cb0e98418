"""The web's entry."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
gc.collect()
gc.freeze()  # what is loaded lives as long as the process: the collector need not walk it again
