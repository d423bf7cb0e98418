"""Variables for limits, slots, retention, monitoring and local runs."""

from dataclasses import dataclass

from config.variables import value_types
from config.variables.value_types import whole
from config.variables.variable import SANDBOXES, variable


@dataclass(frozen=True)
class Operation:
    """The values of the variables that operators tune. Each one has a default."""

    SMS_SLOTS: int = variable(
        whole(1, 200), "The number of texts that a worker process gives to the carrier at a time.", default=8
    )
    UNPAID_CHECKOUT_MINUTES: int = variable(
        whole(1, 1440),
        "The number of minutes for which an unpaid checkout can be paid, if its merchant has set no other time "
        "in the portal.",
        default=60,
    )
    REIMBURSEMENT_HOURS: int = variable(
        whole(0, 168),
        "The number of hours after a mate's payment until the share is reimbursed to the lead's card.",
        default=24,
        in_=dict.fromkeys(SANDBOXES, 0),
        shown_default="24, outside production 0",
    )
    SANDBOX_REFUND_SECONDS: int = variable(
        whole(0, 86_400), "How long the sandbox bank takes to settle a refund.", default=2
    )
    PROVIDER_SLOTS: int = variable(
        whole(1, 200),
        "The number of threads of a web process that can wait for the provider, for payers. A process has three "
        "threads for each slot, and 40 more.",
        default=24,
    )
    CAPTURE_SLOTS: int = variable(
        whole(1, 200),
        "The number of threads of a web process that can wait for the provider, for captures.",
        default=16,
    )
    PUMP_SLOTS: int = variable(
        whole(1, 100),
        "The number of threads of a worker that can wait for the provider, for each of three kinds: captures "
        "and voids, authorizations, refunds. A worker has four times as many threads.",
        default=4,
    )
    WEB_ADDRESS: str = variable(
        value_types.matching(r"[^\s/:]+:[0-9]{1,5}|\[[0-9a-f:]+\]:[0-9]{1,5}", "an address and a port"),
        "The address and port of the web processes. With systemd, the socket unit sets them instead.",
        default="127.0.0.1:8000",
    )
    WEB_CONCURRENCY: int = variable(
        whole(0, 256),
        "The number of web processes. 0: one for each core.",
        default=0,
        shown_default="one for each core",
    )
    PASSWORD_SLOTS: int = variable(
        whole(1, 64),
        "The number of passwords that a web process hashes at a time. Hashing one password takes one core for "
        "a quarter of a second.",
        default=1,
    )
    WEBHOOK_SLOTS: int = variable(
        whole(1, 5_000), "The number of deliveries in flight per worker process.", default=200
    )
    WEBHOOK_SOURCE_ADDRESSES: list[str] = variable(
        value_types.NETWORKS,
        "The IP addresses or networks from which [webhooks reach merchants](#webhooks), comma-separated. The "
        "documentation and `/api/delivery-addresses.json` publish them. If the variable is not set, both say "
        "that no addresses are published.",
        default=[],
    )
    WEBHOOK_RETENTION_DAYS: int = variable(
        whole(7, 3_650), "The number of days for which events, deliveries and attempts are kept.", default=30
    )
    API_CALL_RETENTION_DAYS: int = variable(
        whole(7, 3_650),
        "The number of days for which calls under `/checkouts` are kept for the timelines of orders.",
        default=90,
    )
    PERSON_RETENTION_DAYS: int = variable(
        whole(180, 3_650),
        "The number of days after the last order until a person's data is erased; [privacy.md](privacy.md).",
        default=760,
    )
    ERASURES_FILE: str = variable(
        value_types.PATH,
        "A file outside the database, on another machine's disk, that records each erasure on request. "
        "Production needs it. The units can write only under `/var/lib/checkout`, so mount that disk at "
        "`/var/lib/checkout/kept`, owned by `checkout`.",
        default="",
        example="/var/lib/checkout/kept/erasures",
    )
    LIMIT_READS: str = variable(
        value_types.RATE,
        "The limit of reads for each API client. All clients of a merchant together have twice these limits.",
        default="100/second",
    )
    LIMIT_CREATES: str = variable(
        value_types.RATE, "The limit of creates and the like for each API client.", default="50/second"
    )
    LIMIT_VERBS: str = variable(
        value_types.RATE, "The limit of captures and cancels for each API client.", default="100/second"
    )
    LIMIT_TOKEN_FAILURES: str = variable(
        value_types.RATE,
        "The limit of refused token calls for each pair of client and address.",
        default="20/minute",
    )
    SECOND_FACTOR_REQUIRED: bool = variable(
        value_types.FLAG,
        "Whether every person must have a second factor. It can be false only in `local`.",
        default=True,
        in_={"local": False},
        shown_default="true, in `local` false",
    )
    LIVE_PORTAL_URL: str = variable(
        value_types.url("http", "https"), "In the sandbox: the address of the live portal.", default=""
    )
    SANDBOX_PORTAL_URL: str = variable(
        value_types.url("http", "https"), "In production: the address of the sandbox's portal.", default=""
    )
    METRICS_TOKEN: str = variable(
        value_types.matching(r"\S+", "text without spaces"),
        "20 random characters or more. Only callers that send this token can read `/metrics`. If it is not "
        "set, no caller can.",
        default="",
        is_secret=True,
    )
    METRICS_DIR: str = variable(
        value_types.PATH,
        "The folder, in memory, for the counters of the web processes that were started together. It is "
        "emptied at each start.",
        default="",
        shown_default="`/dev/shm/checkout-<uid>`",
    )
    SENTRY_DSN: str = variable(
        value_types.url("http", "https"),
        "The address to which errors are reported.",
        default="",
        is_secret=True,
    )
    OTEL_EXPORTER_OTLP_ENDPOINT: str = variable(
        value_types.url("http", "https"), "The collector of traces, by OTLP over HTTP.", default=""
    )
    PROBE_HOST: str = variable(
        value_types.TEXT,
        "The address at which a worker or beat serves `/livez`, `/readyz` and `/metrics`.",
        default="127.0.0.1",
    )
    PROBE_PORT: int = variable(
        value_types.PORT, "The port for these probes. 0: no probes. The systemd units set it.", default=0
    )
    SHOP_PORT: int = variable(
        value_types.PORT, "Only in `local`: the port of the demo shop that `make run` starts.", default=0
    )
    WEBHOOK_LOOPBACK: bool = variable(
        value_types.FLAG,
        "Only in `local`: whether webhooks can be sent to this machine.",
        default=False,
        in_={"local": True},
        shown_default="true in `local`",
    )
    FAIL_POINTS: str = variable(
        value_types.PATH, "Only in `local`: the folder where tests put the files of fail points.", default=""
    )
