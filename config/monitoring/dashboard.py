"""The table of panels from which dashboard.json is generated.

The panels that an operator needs first are at the top.
"""

import json
from typing import Any, NamedTuple


class Panel(NamedTuple):
    """A panel: its title, the unit of its axis, and its queries by their legends."""

    title: str
    unit: str
    lines: dict[str, str]


RATE = "[$__rate_interval]"
PANELS = (
    Panel(
        "Requests a second", "reqps", {"{{status}}": f"sum by (status) (rate(checkout_requests_total{RATE}))"}
    ),
    Panel(
        "Time to the answer, 95 of 100",
        "s",
        {
            "{{route}}": "topk(8, histogram_quantile(0.95, sum by (le, route)"
            f" (rate(checkout_request_seconds_bucket{RATE}))))"
        },
    ),
    Panel(
        "The provider's answers",
        "reqps",
        {
            "{{kind}} {{outcome}}": f"sum by (kind, outcome) (rate(checkout_provider_call_seconds_count{RATE}))"
        },
    ),
    Panel(
        "Time to the provider's answer, 95 of 100",
        "s",
        {
            "{{kind}}": "histogram_quantile(0.95, sum by (le, kind)"
            f" (rate(checkout_provider_call_seconds_bucket{RATE})))"
        },
    ),
    Panel(
        "Slots at the provider",
        "none",
        {
            "{{bulkhead}} taken": "sum by (bulkhead) (checkout_slots_taken)",
            "{{bulkhead}}": "sum by (bulkhead) (checkout_slots)",
        },
    ),
    Panel(
        "Refused for want of a slot",
        "reqps",
        {"{{bulkhead}}": f"sum by (bulkhead) (rate(checkout_slots_refused_total{RATE}))"},
    ),
    Panel(
        "Webhooks",
        "reqps",
        {"{{outcome}}": f"sum by (outcome) (rate(checkout_delivery_seconds_count{RATE}))"},
    ),
    Panel("Oldest due row", "s", {"{{queue}}": "max by (queue) (checkout_queue_oldest_seconds)"}),
    Panel(
        "Outcome unknown",
        "none",
        {
            "{{kind}}": "max by (kind) (checkout_unresolved_operations)",
            "holds unheard": "max(checkout_holds_unheard)",
        },
    ),
    Panel("Discrepancies", "none", {"{{kind}}": "max by (kind) (checkout_discrepancies)"}),
    Panel(
        "Connections to the database",
        "none",
        {
            "{{job}} in use": "sum by (job) (checkout_pool_connections_in_use)",
            "{{job}} at most": "sum by (job) (checkout_pool_connections)",
            "{{job}} waiting": "sum by (job) (checkout_pool_waiting)",
        },
    ),
    Panel("The replica is behind", "s", {"replica": "max(checkout_replica_lag_seconds)"}),
    Panel(
        "Starts of the pumps",
        "reqps",
        {"by {{by}}": f"sum by (by) (rate(checkout_pump_starts_total{RATE}))"},
    ),
    Panel(
        "Silence of beat and of workers' threads",
        "s",
        {
            "beat": "time() - max(checkout_beat_last_sign_timestamp_seconds)",
            "{{ticker}}": "topk(5, max by (ticker) (checkout_ticker_silence_seconds))",
        },
    ),
    Panel("Processes by version", "none", {"{{version}}": "count by (version) (checkout_version)"}),
)
WIDTH, HEIGHT = 12, 8  # Grafana's grid has 24 columns


def dashboard() -> str:
    """Return the dashboard as JSON that Grafana can import."""
    shown = {
        "title": "Merchant Checkout Service",
        "uid": "merchant-checkout",
        "schemaVersion": 39,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, panel) for number, panel in enumerate(PANELS)],
    }
    return json.dumps(shown, indent=1) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, 24 // WIDTH)
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "timeseries",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}},
        "targets": [
            {"refId": chr(65 + place), "expr": expression, "legendFormat": words}
            for place, (words, expression) in enumerate(panel.lines.items())
        ],
    }
