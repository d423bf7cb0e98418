"""What a process sends to the operator's own systems, where these are set: errors to Sentry, traces to OpenTelemetry.

Rules environment.errors, environment.traces.
"""

import logging
import sys
from typing import Any

from django.conf import settings

from config import metrics
from config.lib import redaction
from config.lib.process import tracing
from config.version import VERSION


def begin(part: str) -> None:
    """Measure and report from now on in this process; `part` of the service names it."""
    metrics.begin()
    if settings.TRACES:
        tracing.begin(part, VERSION)
    if settings.SENTRY_DSN:
        _tell_errors(part)


def _tell_errors(part: str) -> None:
    """Send errors of the log to Sentry, without request, variables and secrets."""
    import sentry_sdk
    from sentry_sdk.integrations.logging import LoggingIntegration

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        release=VERSION,
        environment=settings.ENVIRONMENT,
        server_name=part,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[LoggingIntegration(level=None, event_level=logging.ERROR)],
        include_local_variables=False,
        send_default_pii=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        before_send=_cleaned,
    )


def _cleaned(event: Any, hint: dict[str, Any]) -> Any:
    """Return Sentry's event about a log line, message and fields separated, with secrets blanked in both."""
    import sentry_sdk
    from sentry_sdk.utils import event_from_exception

    line = getattr(hint.get("log_record"), "msg", None)
    if isinstance(line, dict):  # as structlog passes it
        facts = {key: fact for key, fact in line.items() if key not in ("event", "exc_info")}
        event |= {"logentry": {"message": str(line.get("event"))}, "extra": facts}
        options = sentry_sdk.get_client().options
        if line.get("exc_info") and sys.exc_info()[0] is not None:
            event["exception"] = event_from_exception(sys.exc_info(), options)[0]["exception"]
    blanked = redaction.redact(None, "", event)
    return {key: value for key, value in blanked.items() if key not in ("request", "user", "breadcrumbs")}
