"""The start of a process. If the process must not start, it prints the reasons as sentences, without a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

WRONG_CONFIGURATION = 78  # the exit status EX_CONFIG in sysexits.h


@contextmanager
def refusals_printed() -> Iterator[None]:
    """Turn ImproperlyConfigured into sentences on stderr, and exit with the status WRONG_CONFIGURATION."""
    try:
        yield
    except ImproperlyConfigured as refused:
        print(refused, file=sys.stderr, flush=True)
        raise SystemExit(WRONG_CONFIGURATION) from None


def load_settings(**_: Any) -> None:
    """Load the settings. If the service must not start, print the reasons and exit."""
    with refusals_printed():
        settings.configured or settings.ENVIRONMENT  # noqa: B018 - the first use of a setting loads all of them
