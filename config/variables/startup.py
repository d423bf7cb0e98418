"""The start of a process. A refused start prints its reasons as sentences, not as a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

WRONG_CONFIGURATION = 78  # the exit status EX_CONFIG of sysexits.h


@contextmanager
def refusals_printed() -> Iterator[None]:
    """Turn ImproperlyConfigured into its sentences on stderr and exit status WRONG_CONFIGURATION."""
    try:
        yield
    except ImproperlyConfigured as refused:
        print(refused, file=sys.stderr, flush=True)
        raise SystemExit(WRONG_CONFIGURATION) from None


def load_settings(**_: Any) -> None:
    """Load the settings, or print why the service must not start and exit."""
    with refusals_printed():
        settings.configured or settings.ENVIRONMENT  # noqa: B018 - the first use of a setting loads all of them
