"""OpenTelemetry spans, if a collector is configured. Otherwise no span is made, and no library is loaded.

Each row keeps the `traceparent` under which it was written. All work that a request causes therefore belongs
to one trace, even if a worker does it hours later. Rule environment.traces.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

_NO_SPAN = nullcontext()
_tracer: Any = None  # set by `begin`


def begin(part: str, version: str) -> None:
    """Start to send this process's spans to OTEL_EXPORTER_OTLP_ENDPOINT. `part` is the process's name."""
    global _tracer
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(
        resource=Resource.create({"service.name": f"checkout-{part}", "service.version": version})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("checkout")


def span(name: str, *, parent: str = "", **facts: object) -> AbstractContextManager[Any]:
    """Make a span around the block; yield the span, or None if tracing is off.

    Its parent is the span that the `traceparent` in `parent` names, else the current span. Only the type of
    an exception is recorded, because its text can contain secrets.
    """
    return _NO_SPAN if _tracer is None else _open_span(name, parent, facts)


@contextmanager
def _open_span(name: str, parent: str, facts: dict[str, object]) -> Iterator[Any]:
    from opentelemetry.trace import Status, StatusCode

    attributes = {key: str(fact) for key, fact in facts.items() if fact}
    with _tracer.start_as_current_span(
        name,
        context=_parse_parent(parent),
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as begun:
        try:
            yield begun
        except BaseException as error:
            begun.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


def current_traceparent() -> str:
    """Return the `traceparent` of the current span, or "" if there is none."""
    if _tracer is None:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def _parse_parent(parent: str) -> Any:
    """Return the tracing context for a `traceparent`. For "", return None, which means the current span."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not parent:
        return None
    return TraceContextTextMapPropagator().extract({"traceparent": parent})
