"""The logging setup. Log lines are JSON. They contain the values that are bound to the request, and no secrets.

Rules environment.logs, secret.logs.
"""

from collections.abc import MutableMapping
from enum import Enum
from typing import Any

import structlog

from config import version
from config.lib import redaction
from config.monitoring import database_errors

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    version.add,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
# Loggers of libraries. Their own handlers are removed, because these would bypass `redact`.
OTHERS_LOGGERS = ("django", "django.server", "gunicorn.access", "gunicorn.error")
_LOGGERS: dict[str, Any] = {
    **{name: {"handlers": [], "propagate": True} for name in OTHERS_LOGGERS},
    **{f"celery.{part}": {"level": "WARNING"} for part in ("app.trace", "worker.strategy", "beat")},
    "django.request": {"level": "ERROR"},
    "fido2": {"level": "WARNING"},  # its messages below this level contain ids of passkeys
}


def configure(*, in_words: bool) -> dict[str, Any]:
    """Make structlog write through Python's logging, and return the value for settings.LOGGING.

    With `in_words`, the log is text for people instead of JSON.
    """
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": _formatter_settings(in_words)},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["console"], "level": "INFO"},
        "loggers": _LOGGERS,
    }


def _formatter_settings(in_words: bool) -> dict[str, Any]:
    words = structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _SHARED,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            database_errors.add_sqlstate,
            structlog.processors.format_exc_info,
            _replace_enum_members,
            redaction.redact,
            words if in_words else structlog.processors.JSONRenderer(),
        ],
    }


def _replace_enum_members(
    _logger: Any, _method: str, line: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace each enum member with its value: `succeeded`, not `<Verdict.SUCCEEDED: 'succeeded'>`."""
    return {name: value.value if isinstance(value, Enum) else value for name, value in line.items()}
