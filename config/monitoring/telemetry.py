"""Reports to the operator's systems, if they are configured: errors to Sentry, traces to OpenTelemetry.

Rules environment.errors, environment.traces.
"""

import logging
import sys
from typing import Any

from django.conf import settings

from config import version
from config.lib import redaction
from config.lib.process import tracing
from config.monitoring import certificates, metrics


def start_reporting(part: str) -> None:
    """Start metrics, traces and error reports in this process. `part` names the process, such as "web"."""
    metrics.start_measuring()
    if part == "beat":
        certificates.start_watching()
    if settings.TRACES:
        tracing.begin(part, version.running_version())
    if settings.SENTRY_DSN:
        _report_errors(part)


def _report_errors(part: str) -> None:
    """Send logged errors to Sentry, without the request, local variables and secrets."""
    import sentry_sdk
    from sentry_sdk.integrations.logging import LoggingIntegration

    sentry_sdk.init(
        dsn=settings.SENTRY_DSN,
        release=version.running_version(),
        environment=settings.ENVIRONMENT,
        server_name=part,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[LoggingIntegration(level=None, event_level=logging.ERROR)],
        include_local_variables=False,
        send_default_pii=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        before_send=_redact_event,
    )


def _redact_event(event: Any, hint: dict[str, Any]) -> Any:
    """Return Sentry's event for a log line, with separate message and fields, and with secrets blanked in both."""
    import sentry_sdk
    from sentry_sdk.utils import event_from_exception

    line = getattr(hint.get("log_record"), "msg", None)
    if isinstance(line, dict):  # structlog passes a log line as a dict
        facts = {key: fact for key, fact in line.items() if key not in ("event", "exc_info")}
        event |= {"logentry": {"message": str(line.get("event"))}, "extra": facts}
        options = sentry_sdk.get_client().options
        if line.get("exc_info") and sys.exc_info()[0] is not None:
            event["exception"] = event_from_exception(sys.exc_info(), options)[0]["exception"]
    blanked = redaction.redact(None, "", event)
    return {key: value for key, value in blanked.items() if key not in ("request", "user", "breadcrumbs")}
