"""The table of alerts from which alerts.yml is generated. docs/operate.md says what to do about each alert.

A Pace converts every time in the table, so that a test can make all times shorter.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

PAGE, TICKET = "page", "ticket"  # wakes a person; waits for working hours
RUNBOOKS = "docs/operate.md"


@dataclass(frozen=True)
class Pace:
    """The factor for all times in the rules: with 0.05, a condition of one minute is met after 3 s."""

    factor: float = 1.0

    def seconds(self, number: float) -> str:
        """Return a number of seconds as an expression contains it."""
        return f"{number * self.factor:g}"

    def span(self, number: float) -> str:
        """Return a number of seconds as a duration in Prometheus's syntax."""
        return f"{round(number * self.factor * 1000)}ms" if self.factor < 1 else f"{number:g}s"


@dataclass(frozen=True)
class Alert:
    """An alert with a summary of one sentence.

    It fires once its expression has been true for `lasts` seconds.
    """

    name: str
    severity: str
    lasts: float
    says: str
    expression: Callable[[Pace], str]


ALERTS = (
    Alert("WebDown", PAGE, 30, "A web process does not answer.", lambda _: 'up{job="checkout-web"} == 0'),
    Alert(
        "WorkerDown",
        PAGE,
        30,
        "A worker does not answer: webhooks, releases and refunds may stand still.",
        lambda _: 'up{job="checkout-worker"} == 0',
    ),
    Alert(
        "BeatGone",
        TICKET,
        30,
        "Beat starts nothing: workers look by themselves, but nothing is cleaned up, proved or reconciled.",
        lambda pace: f"time() - max(checkout_beat_last_sign_timestamp_seconds) > {pace.seconds(120)}",
    ),
    Alert(
        "WorkerStandsStill",
        PAGE,
        0,
        "A thread of a worker stands still; after two minutes its process ends by itself.",
        lambda pace: f"max by (ticker) (checkout_ticker_silence_seconds) > {pace.seconds(60)}",
    ),
    Alert(
        "DatabaseAway",
        PAGE,
        30,
        "The database does not answer: nothing can be created, paid or captured.",
        lambda _: "max(checkout_database_answers) == 0",
    ),
    Alert(
        "Closed",
        PAGE,
        0,
        "The database was restored: nothing is moved or told until it is repaired.",
        lambda _: "max(checkout_closed) == 1",
    ),
    Alert(
        "PoolFull",
        PAGE,
        60,
        "Requests wait for a connection to the database, and are refused after five seconds.",
        lambda _: "max(checkout_pool_waiting) > 0",
    ),
    Alert(
        "ProviderSilent",
        PAGE,
        60,
        "More than half of the calls of the provider end without a clear answer.",
        lambda pace: (
            f'sum(rate(checkout_provider_call_seconds_count{{outcome="unknown"}}[{pace.span(120)}]))'
            f" / sum(rate(checkout_provider_call_seconds_count[{pace.span(120)}])) > 0.5"
        ),
    ),
    Alert(
        "SlotsRefused",
        PAGE,
        60,
        "Payers or captures find no slot at the provider in two seconds, and are told to come again.",
        # Any stranger can use up the slots of passwords. That is no reason to wake a person.
        lambda pace: (
            f'sum by (bulkhead) (rate(checkout_slots_refused_total{{bulkhead!="passwords"}}[{pace.span(120)}])) > 0'
        ),
    ),
    Alert(
        "QueueStuck",
        PAGE,
        60,
        "Rows of a queue have been due for too long: no worker takes them, or each try fails.",
        lambda _: "max by (queue) (checkout_queue_late) > 0",
    ),
    Alert(
        "HoldsUnheard",
        PAGE,
        30,
        "Holds end within 30 s, and their merchants have not taken the event that says so.",
        lambda _: "max(checkout_holds_unheard) > 0",
    ),
    Alert(
        "OutcomeUnknown",
        TICKET,
        0,
        "The provider has said nothing clear about an operation for a quarter of an hour.",
        lambda pace: (
            f'max by (kind) (checkout_unresolved_oldest_seconds{{kind!="refund"}}) > {pace.seconds(900)}'
        ),
    ),
    Alert(
        "Discrepancies",
        TICKET,
        0,
        "Our books and the provider's, or money and states, disagree.",
        lambda _: "max by (kind) (checkout_discrepancies) > 0",
    ),
    Alert(
        "ReconciliationLate",
        TICKET,
        0,
        "The provider's books have not been read completely for 26 hours: a night was missed.",
        lambda pace: f"max(checkout_reconciled_age_seconds) > {pace.seconds(26 * 3600)}",
    ),
    Alert(
        "RequestsFail",
        PAGE,
        60,
        "More than one request in fifty is answered with a 5xx.",
        lambda pace: (
            f'sum(rate(checkout_requests_total{{status=~"5.."}}[{pace.span(300)}]))'
            f" / sum(rate(checkout_requests_total[{pace.span(300)}])) > 0.02"
        ),
    ),
    Alert(
        "RequestsSlow",
        TICKET,
        300,
        "One request in twenty takes longer than 2.5 s.",
        lambda pace: (
            "histogram_quantile(0.95, sum by (le)"
            f" (rate(checkout_request_seconds_bucket[{pace.span(300)}]))) > 2.5"
        ),
    ),
    Alert(
        "DeliveriesFail",
        TICKET,
        600,
        "More than half of the webhooks are not taken: perhaps we cannot reach the world.",
        lambda pace: (
            f'sum(rate(checkout_delivery_seconds_count{{outcome!="delivered"}}[{pace.span(600)}]))'
            f" / sum(rate(checkout_delivery_seconds_count[{pace.span(600)}])) > 0.5"
        ),
    ),
    Alert(
        "ReplicaLate",
        TICKET,
        300,
        "The replica is away or more than five seconds behind: the primary serves all pages.",
        lambda pace: f"max(checkout_replica_lag_seconds) > {pace.seconds(5)}",
    ),
    Alert(
        "PartitionsMissing",
        TICKET,
        0,
        "In five days or less a table of events or calls has no partition: none were made lately.",
        lambda _: "min by (table) (checkout_partitions_ahead_days) <= 5",
    ),
    Alert(
        "VersionsMixed",
        TICKET,
        900,
        "Processes of several versions have been running side by side for a quarter of an hour.",
        lambda _: "count(count by (version) (checkout_version)) > 1",
    ),
)


def rules(pace: Pace = Pace()) -> str:
    """Return the text of the rules file for Prometheus."""
    lines = [
        "# Made of config/monitoring/alerts.py by `make monitoring`.",
        "groups:",
        "- name: checkout",
        "  rules:",
    ]
    for alert in ALERTS:
        lines += [
            f"  - alert: {alert.name}",
            f"    expr: {json.dumps(alert.expression(pace))}",
            f"    for: {pace.span(alert.lasts)}",
            "    labels:",
            f"      severity: {alert.severity}",
            "    annotations:",
            f"      summary: {json.dumps(alert.says)}",
            f"      runbook: {RUNBOOKS}#{alert.name.lower()}",
        ]
    return "\n".join(lines) + "\n"
