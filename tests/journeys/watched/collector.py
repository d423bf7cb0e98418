"""A test server that replaces Sentry and an OpenTelemetry collector."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.serving import Reply, serving


class Collector:
    """A server that receives error reports for Sentry and OpenTelemetry spans, over HTTP."""

    def __init__(self) -> None:
        self.errors: list[bytes] = []
        # The complete requests that contain spans, as text.
        self.exports: list[str] = []
        # For each span: its trace id, the span id of its parent, its name, and its attributes.
        self.spans: list[tuple[str, str, str, dict[str, str]]] = []

    def take(self, path: str, body: bytes) -> None:
        if path != "/v1/traces":
            self.errors.append(body)
            return
        export = ExportTraceServiceRequest.FromString(body)
        self.exports.append(str(export))
        for resource in export.resource_spans:
            for span in (one for scope in resource.scope_spans for one in scope.spans):
                facts = {fact.key: fact.value.string_value for fact in span.attributes}
                self.spans.append((span.trace_id.hex(), span.parent_span_id.hex(), span.name, facts))

    def traces_with(self, name: str) -> set[str]:
        return {trace for trace, _, each, _ in list(self.spans) if each == name}

    def traces_of(self, checkout_uuid: str) -> set[str]:
        """Return the ids of the traces that contain a span about the checkout."""
        return {trace for trace, _, _, facts in list(self.spans) if facts.get("checkout") == checkout_uuid}

    def names_about(self, checkout_uuid: str) -> set[str]:
        """Return the names of the spans about the checkout."""
        return {name for _, _, name, facts in list(self.spans) if facts.get("checkout") == checkout_uuid}

    def names_in(self, trace: str) -> set[str]:
        return {name for each, _, name, _ in list(self.spans) if each == trace}


@contextmanager
def collecting() -> Iterator[tuple[Collector, dict[str, str]]]:
    """Run a collector for the duration of the block.

    Yield the collector, and the environment variables that make a process report to it.
    """
    collector = Collector()

    def take(asked: BaseHTTPRequestHandler, body: bytes) -> Reply:
        is_packed = asked.headers.get("Content-Encoding") == "gzip"
        collector.take(asked.path, gzip.decompress(body) if is_packed else body)
        return Reply(200, b"{}")

    with serving(take) as address:
        yield (
            collector,
            {
                "SENTRY_DSN": f"{address.replace('://', '://key@')}/1",
                "OTEL_EXPORTER_OTLP_ENDPOINT": address,
                "OTEL_BSP_SCHEDULE_DELAY": "200",
            },
        )
