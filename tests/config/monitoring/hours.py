"""Metric series for `promtool test rules`. Each alert must fire with its bad series, but not with its good one.

A series is written in promtool's notation, with one value per 15 s. For example, `0+5x40` starts at 0 and rises by 5
forty times.
"""

from typing import Any, NamedTuple

from tests.config.monitoring import rules


class Series(NamedTuple):
    """With the `bad` values, an alert must fire `within` so many seconds. With the `good` values, it must not fire."""

    bad: dict[str, str]
    good: dict[str, str]
    within: int


UP = 'up{{job="checkout-{}"}}'
SERIES: dict[str, Series] = {
    "WebDown": Series({UP.format("web"): "0x8"}, {UP.format("web"): "1x8"}, 45),
    "WorkerDown": Series({UP.format("worker"): "0x8"}, {UP.format("worker"): "1x8"}, 45),
    "BeatGone": Series(
        {"checkout_beat_last_sign_timestamp_seconds": "0x20"},
        {"checkout_beat_last_sign_timestamp_seconds": "0+15x20"},
        240,
    ),
    "WorkerStandsStill": Series(
        {'checkout_ticker_silence_seconds{ticker="a"}': "0+15x10"},
        {'checkout_ticker_silence_seconds{ticker="a"}': "50x10"},
        90,
    ),
    "DatabaseAway": Series({"checkout_database_answers": "0x8"}, {"checkout_database_answers": "1x8"}, 45),
    "Closed": Series({"checkout_closed": "1x4"}, {"checkout_closed": "0x4"}, 15),
    "PoolFull": Series({"checkout_pool_waiting": "3x10"}, {"checkout_pool_waiting": "3 0 3 0 3 0 3 0 3"}, 90),
    "ProviderSilent": Series(
        {
            'checkout_provider_call_seconds_count{outcome="unknown"}': "0+6x20",
            'checkout_provider_call_seconds_count{outcome="succeeded"}': "0+4x20",
        },
        {
            'checkout_provider_call_seconds_count{outcome="unknown"}': "0+4x20",
            'checkout_provider_call_seconds_count{outcome="succeeded"}': "0+6x20",
        },
        120,
    ),
    "SlotsRefused": Series(
        {'checkout_slots_refused_total{bulkhead="payers"}': "0+1x20"},
        {
            'checkout_slots_refused_total{bulkhead="payers"}': "7x20",
            'checkout_slots_refused_total{bulkhead="passwords"}': "0+1x20",
        },
        120,
    ),
    "QueueStuck": Series(
        {'checkout_queue_late{queue="a"}': "1x10"}, {'checkout_queue_late{queue="a"}': "1 0 1 0 1 0 1 0"}, 90
    ),
    "HoldsUnheard": Series(
        {"checkout_holds_unheard": "1x8"}, {"checkout_holds_unheard": "1 0 1 0 1 0 1"}, 60
    ),
    "PartitionsMissing": Series(
        {'checkout_partitions_ahead_days{table="a"}': "5x4"},
        {'checkout_partitions_ahead_days{table="a"}': "6x4"},
        15,
    ),
    "OutcomeUnknown": Series(
        {'checkout_unresolved_oldest_seconds{kind="capture"}': "0+15x80"},
        {'checkout_unresolved_oldest_seconds{kind="refund"}': "0+15x80"},
        930,
    ),
    "Discrepancies": Series(
        {'checkout_discrepancies{kind="disputed"}': "1x4"},
        {'checkout_discrepancies{kind="disputed"}': "_x4"},
        15,
    ),
    "ReconciliationLate": Series(
        {"checkout_reconciled_age_seconds": "93601x4"}, {"checkout_reconciled_age_seconds": "93599x4"}, 15
    ),
    "BackupLate": Series(
        {"checkout_backup_age_seconds": "93601x4"}, {"checkout_backup_age_seconds": "93599x4"}, 15
    ),
    "ArchiveFails": Series(
        {"checkout_archive_failing": "1x30"}, {"checkout_archive_failing": "1x10 0 1x10 0"}, 330
    ),
    # The simulated time begins at 0, so the value is the number of seconds until the certificate expires.
    "CertificateExpires": Series(
        {
            'checkout_certificate_expires_timestamp_seconds{host="a"}': "1209000x30",
            'checkout_certificate_expires_timestamp_seconds{host="b"}': "7776000x30",
        },
        {'checkout_certificate_expires_timestamp_seconds{host="a"}': "0 0 0 1300000x30"},
        330,
    ),
    "ClockWrong": Series(
        {'checkout_clock_ahead_seconds{job="checkout-worker"}': "-2.1x10"},
        {
            'checkout_clock_ahead_seconds{job="checkout-worker"}': "1.9x10",
            'checkout_clock_ahead_seconds{job="checkout-web"}': "7 7 0x10",
        },
        90,
    ),
    "RequestsFail": Series(
        {
            'checkout_requests_total{status="500"}': "0+3x30",
            'checkout_requests_total{status="200"}': "0+97x30",
        },
        {
            'checkout_requests_total{status="500"}': "0+1x30",
            'checkout_requests_total{status="404"}': "0+99x30",
        },
        120,
    ),
    "RequestsSlow": Series(
        {
            'checkout_request_seconds_bucket{le="2.5"}': "0+90x60",
            'checkout_request_seconds_bucket{le="5.0"}': "0+100x60",
            'checkout_request_seconds_bucket{le="+Inf"}': "0+100x60",
        },
        {
            'checkout_request_seconds_bucket{le="2.5"}': "0+96x60",
            'checkout_request_seconds_bucket{le="5.0"}': "0+100x60",
            'checkout_request_seconds_bucket{le="+Inf"}': "0+100x60",
        },
        360,
    ),
    "WritesFail": Series(
        {'checkout_database_errors_total{sqlstate="53100"}': "0 0 1x10"},
        {'checkout_database_errors_total{sqlstate="40001"}': "0+1x20"},
        75,
    ),
    "TextsFail": Series(
        {
            'checkout_sms_total{outcome="unreachable"}': "0+1x40",
            'checkout_sms_total{outcome="sent"}': "0 0 0 1x37",
        },
        {'checkout_sms_total{outcome="refused"}': "0+1x40", 'checkout_sms_total{outcome="sent"}': "0+2x40"},
        240,
    ),
    "MailsFail": Series(
        {'checkout_mails_total{outcome="failed"}': "0+1x80"},
        {
            'checkout_mails_total{outcome="dropped"}': "0 1x79",
            'checkout_mails_total{outcome="sent"}': "0+1x80",
        },
        240,
    ),
    "DeliveriesFail": Series(
        {
            'checkout_delivery_seconds_count{outcome="refused"}': "0+6x80",
            'checkout_delivery_seconds_count{outcome="delivered"}': "0+4x80",
        },
        {
            'checkout_delivery_seconds_count{outcome="refused"}': "0+4x80",
            'checkout_delivery_seconds_count{outcome="delivered"}': "0+6x80",
        },
        660,
    ),
    "ReplicaLate": Series(
        {"checkout_replica_lag_seconds": "0+15x40"},
        {"checkout_replica_lag_seconds": "0.5 7 0.5 7 4.9x20"},
        345,
    ),
    "VersionsMixed": Series(
        {'checkout_version{version="1"}': "1x80", 'checkout_version{version="2"}': "1x80"},
        {
            'checkout_version{version="1",job="web"}': "1x80",
            'checkout_version{version="1",job="worker"}': "1x80",
        },
        930,
    ),
}


def tests(file: str) -> dict[str, Any]:
    """Return promtool's test file.

    Each alert fires in time but not too early, and does not fire for good values.
    """
    found = []
    for rule in rules.RULES:
        series = SERIES[rule["alert"]]
        found.append(_test(rule["alert"], series.good, at=series.within, fires=False))
        found.append(_test(rule["alert"], series.bad, at=series.within, fires=True))
        if rules.lasts(rule):
            found.append(_test(rule["alert"], series.bad, at=rules.lasts(rule) - 15, fires=False))
    return {"rule_files": [file], "evaluation_interval": "15s", "tests": found}


def _test(name: str, series: dict[str, str], *, at: int, fires: bool) -> dict[str, Any]:
    expression = f'max(ALERTS{{alertname="{name}",alertstate="firing"}})'
    return {
        "interval": "15s",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": f"{at}s",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }
