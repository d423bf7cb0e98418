"""A Sentry and an OpenTelemetry collector for one test."""

import gzip
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """A server that takes Sentry's envelopes and OTLP's spans over HTTP."""

    def __init__(self) -> None:
        self.errors: list[bytes] = []
        self.exports: list[str] = []  # of spans, whole
        self.spans: list[tuple[str, str, str, dict[str, str]]] = []  # trace, span's parent, name, attributes

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
        """Return the traces that name a checkout."""
        return {trace for trace, _, _, facts in list(self.spans) if facts.get("checkout") == checkout_uuid}

    def names_about(self, checkout_uuid: str) -> set[str]:
        """Return the names of the spans that name a checkout."""
        return {name for _, _, name, facts in list(self.spans) if facts.get("checkout") == checkout_uuid}

    def names_in(self, trace: str) -> set[str]:
        return {name for each, _, name, _ in list(self.spans) if each == trace}


@contextmanager
def collecting() -> Iterator[tuple[Collector, dict[str, str]]]:
    """Run a collector until the block ends; yield it and the variables of a process that reports to it."""
    collector = Collector()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place = f"127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield (
            collector,
            {
                "SENTRY_DSN": f"http://key@{place}/1",
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{place}",
                "OTEL_BSP_SCHEDULE_DELAY": "200",
            },
        )
    finally:
        server.shutdown()
        server.server_close()
