"""Each wrong configuration is refused with one sentence, and several faults are reported together."""

import os
import subprocess
import sys

import pytest

from config.variables import reading
from config.variables.startup import WRONG_CONFIGURATION
from config.variables.table import TABLE, Variables
from tests.config.starting import PRODUCTION, SETTINGS

pytestmark = pytest.mark.rule("environment.variables")
KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
GOOD = PRODUCTION | {
    "SECRET_KEY": "kb3VwZ9qLx7Tn2RfYc8DgHs5JmAp4WeUtQi6Ov1XyBzCdEfGhJ",
    "FIELD_KEYS": KEY,
    "DATABASE_URL": "postgresql://checkout@127.0.0.1/checkout",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
}
SANDBOX = {
    name: value for name, value in GOOD.items() if not name.startswith(("STRIPE", "PROVIDER", "SMS"))
} | {"ENVIRONMENT": "sandbox"}
LOCAL = SANDBOX | {"ENVIRONMENT": "local", "BASE_URL": "http://127.0.0.1:8000"}
TWILIO = GOOD | {
    "SMS_SENDER": "hosted_page.sms.senders.twilio.TwilioSender",
    "TWILIO_ACCOUNT_SID": "AC" + "0a" * 16,
    "TWILIO_AUTH_TOKEN": "1b" * 16,
    "TWILIO_FROM": "+15005550006",
}
REMOTE = "postgresql://checkout@db.example/checkout"
WRONG = (
    ({"ENVIRONMENT": ""}, "Set ENVIRONMENT: it must be one of local, production, sandbox."),
    ({"ENVIRONMENT": "staging"}, "ENVIRONMENT must be one of local, production, sandbox, not 'staging'."),
    (GOOD | {"BASE_URL": ""}, "Set BASE_URL"),
    (GOOD | {"BASE_URL": "checkout.example"}, "BASE_URL must be an address such as https://host.example"),
    (GOOD | {"BASE_URL": "https://checkout.example/shop"}, "BASE_URL must be an address"),
    (GOOD | {"BASE_URL": "https://checkout.example:port"}, "BASE_URL must be an address"),
    (GOOD | {"BASE_URL": "http://checkout.example"}, "BASE_URL must be an https address."),
    (SANDBOX | {"BASE_URL": "http://127.0.0.1:8000"}, "BASE_URL must be an https address."),
    (LOCAL | {"BASE_URL": "https://checkout.example"}, "BASE_URL must be a loopback address"),
    (GOOD | {"CHECKOUT_PAGE_URL": "https://pay.example"}, "CHECKOUT_PAGE_URL must be an address"),
    (GOOD | {"CHECKOUT_PAGE_URL": "https://pay.example/pay/"}, "CHECKOUT_PAGE_URL must be an address"),
    (GOOD | {"CHECKOUT_PAGE_URL": "http://pay.example/pay"}, "CHECKOUT_PAGE_URL must be an https address"),
    (GOOD | {"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS must list host names, not *."),
    (GOOD | {"ALLOWED_HOSTS": "https://pay.example"}, "ALLOWED_HOSTS must be host names, comma-separated"),
    (
        GOOD | {"TRUSTED_PROXY_COUNT": "-1"},
        "TRUSTED_PROXY_COUNT must be a whole number from 0 to 10, not '-1'.",
    ),
    (GOOD | {"SECRET_KEY": ""}, "Set SECRET_KEY"),
    (GOOD | {"SECRET_KEY": GOOD["SECRET_KEY"][:49]}, "SECRET_KEY must be 50 random characters or more."),
    (GOOD | {"SECRET_KEY": "x" * 60}, "SECRET_KEY must be 50 random characters or more."),
    (GOOD | {"LOOKUP_KEY": "abc" * 20}, "LOOKUP_KEY must be 50 random characters or more."),
    (GOOD | {"FIELD_KEYS": ""}, "Set FIELD_KEYS: it must be Fernet keys"),
    (GOOD | {"FIELD_KEYS": "change-me"}, "FIELD_KEYS must be Fernet keys"),
    (GOOD | {"FIELD_KEYS": f"{KEY},{KEY[:-2]}"}, "FIELD_KEYS must be Fernet keys"),
    (LOCAL | {"FIELD_KEYS": ","}, "FIELD_KEYS must be Fernet keys"),
    (GOOD | {"DATABASE_URL": ""}, "Set DATABASE_URL"),
    (
        GOOD | {"DATABASE_URL": "mysql://db.example/checkout"},
        "DATABASE_URL must be an address such as postgresql://",
    ),
    (GOOD | {"DATABASE_URL": REMOTE}, "DATABASE_URL must contain sslmode=verify-full"),
    (GOOD | {"DATABASE_URL": f"{REMOTE}?sslmode=require"}, "DATABASE_URL must contain sslmode=verify-full"),
    (GOOD | {"DATABASE_REPLICA_URL": REMOTE}, "DATABASE_REPLICA_URL must contain sslmode=verify-full"),
    (GOOD | {"DATABASE_POOL": "many"}, "DATABASE_POOL must be a whole number from 0 to 500, not 'many'."),
    (GOOD | {"DATABASE_PREPARE": "yes"}, "DATABASE_PREPARE must be true or false, not 'yes'."),
    (GOOD | {"REDIS_URL": ""}, "Set REDIS_URL"),
    (GOOD | {"REDIS_URL": "127.0.0.1:6379"}, "REDIS_URL must be an address that begins with redis://"),
    (GOOD | {"REDIS_URL": "redis://redis.example"}, "REDIS_URL must begin with rediss://"),
    (GOOD | {"REDIS_URL": "rediss://redis.example"}, "REDIS_URL must contain ?ssl_cert_reqs=required."),
    (
        SANDBOX | {"REDIS_URL": "rediss://a.example?ssl_cert_reqs=none"},
        "REDIS_URL must contain ?ssl_cert_reqs",
    ),
    (GOOD | {"PROVIDER": "Stripe"}, "PROVIDER must be the dotted path of a class, not 'Stripe'."),
    (GOOD | {"STRIPE_API": "http://api.stripe.com"}, "STRIPE_API must be an https address."),
    (GOOD | {"STRIPE_SCRIPT": "https://js.stripe.example/s.js"}, "STRIPE_SCRIPT must be at Stripe"),
    (GOOD | {"SENTRY_DSN": "http://key@sentry.example/1"}, "SENTRY_DSN must be an https address."),
    (
        GOOD | {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel.example"},
        "OTEL_EXPORTER_OTLP_ENDPOINT must be an https",
    ),
    (GOOD | {"SMS_SENDER_IDS": "GB"}, "SMS_SENDER_IDS must be pairs of a country's two letters and a sender"),
    (GOOD | {"SMS_SENDER_IDS": "GB:One,GB:Two"}, "SMS_SENDER_IDS must be pairs"),
    (GOOD | {"SMS_SENDER_IDS": "UK:Checkout"}, "SMS_SENDER_IDS must be pairs"),
    (GOOD | {"SMS_SENDER_IDS": "GB:Far-too-long"}, "SMS_SENDER_IDS must be pairs"),
    (GOOD | {"SMS_COUNTRIES": "GB,UK"}, "SMS_COUNTRIES must be countries' two letters"),
    (GOOD | {"SMS_MERCHANT_BUDGET": "0"}, "SMS_MERCHANT_BUDGET must be a whole number from 1"),
    (TWILIO | {"TWILIO_ACCOUNT_SID": ""}, "Set TWILIO_ACCOUNT_SID, because SMS_SENDER is Twilio's."),
    (
        TWILIO | {"TWILIO_ACCOUNT_SID": "SK" + "0a" * 16},
        "TWILIO_ACCOUNT_SID must be AC and 32 hexadecimal digits",
    ),
    (TWILIO | {"TWILIO_AUTH_TOKEN": ""}, "Set TWILIO_AUTH_TOKEN, because SMS_SENDER is Twilio's."),
    (TWILIO | {"TWILIO_FROM": ""}, "Set one of TWILIO_FROM and TWILIO_MESSAGING_SERVICE_SID."),
    (TWILIO | {"TWILIO_MESSAGING_SERVICE_SID": "MG" + "2c" * 16}, "Set one of TWILIO_FROM and"),
    (TWILIO | {"TWILIO_FROM": "x y"}, "TWILIO_FROM must be a number such as +15550100"),
    (
        GOOD | {"UNPAID_CHECKOUT_MINUTES": "-5"},
        "UNPAID_CHECKOUT_MINUTES must be a whole number from 1 to 1440",
    ),
    (GOOD | {"UNPAID_CHECKOUT_MINUTES": "soon"}, "UNPAID_CHECKOUT_MINUTES must be a whole number"),
    (GOOD | {"PROVIDER_SLOTS": "0"}, "PROVIDER_SLOTS must be a whole number from 1 to 200, not '0'."),
    (GOOD | {"WEB_CONCURRENCY": "auto"}, "WEB_CONCURRENCY must be a whole number from 0 to 256, not 'auto'."),
    (
        GOOD | {"LIMIT_READS": "lots"},
        "LIMIT_READS must be a limit such as 100/second or 30/minute, not 'lots'.",
    ),
    (GOOD | {"PERSON_RETENTION_DAYS": "0"}, "PERSON_RETENTION_DAYS must be a whole number from 180 to 3650"),
    (GOOD | {"API_CALL_RETENTION_DAYS": "6"}, "API_CALL_RETENTION_DAYS must be a whole number from 7"),
    (GOOD | {"WEBHOOK_SOURCE_ADDRESSES": "nat.example"}, "WEBHOOK_SOURCE_ADDRESSES must be IP addresses"),
    (GOOD | {"WEBHOOK_LOOPBACK": "true"}, "WEBHOOK_LOOPBACK is only for local. Remove it."),
    (SANDBOX | {"FAIL_POINTS": "/run/points"}, "FAIL_POINTS is only for local. Remove it."),
    (SANDBOX | {"SECOND_FACTOR_REQUIRED": "false"}, "SECOND_FACTOR_REQUIRED can only be false in local."),
    (GOOD | {"METRICS_TOKEN": "short"}, "METRICS_TOKEN must be 20 random characters or more."),
    (GOOD | {"METRICS_DIR": "metrics"}, "METRICS_DIR must be an absolute path, not 'metrics'."),
    (GOOD | {"ERASURES_FILE": ""}, "Set ERASURES_FILE."),
    (GOOD | {"EMAIL_USE_TLS": "false"}, "EMAIL_USE_TLS must be true."),
    (
        GOOD | {"OPERATORS": "operators"},
        "OPERATORS must be e-mail addresses, comma-separated, not 'operators'.",
    ),
    (GOOD | {"PROBE_PORT": "80100"}, "PROBE_PORT must be a whole number from 0 to 65535, not '80100'."),
    (GOOD | {"DATABSE_URL": "x"}, "DATABSE_URL is not a variable of the service. Did you mean DATABASE_URL?"),
    (
        SANDBOX | {"LIMIT_READ": "5/hour"},
        "LIMIT_READ is not a variable of the service. Did you mean LIMIT_READS?",
    ),
)


def problems_of(environ: dict[str, str]) -> list[str]:
    try:
        reading.read(environ)
    except reading.Refused as refused:
        return refused.problems
    return []


@pytest.mark.parametrize(("environ", "sentence"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_configuration_is_refused_with_one_sentence(environ: dict[str, str], sentence: str) -> None:
    (problem,) = problems_of(environ)
    assert sentence in problem and problem.endswith((".", "?", "openssl rand -base64 48"))


def test_all_problems_are_reported_together() -> None:
    wrong = GOOD | {"PROVIDER_SLOTS": "0", "LIMIT_READS": "lots", "ERASURES_FILE": "", "SECRET_KEY": ""}
    assert len(problems_of(wrong)) == 4


@pytest.mark.parametrize(
    "environ", [GOOD, SANDBOX, LOCAL, TWILIO, {**GOOD, "UNRELATED": "x", "HOME": "/root"}]
)
def test_a_right_configuration_is_read(environ: dict[str, str]) -> None:
    assert problems_of(environ) == []


def test_a_protected_remote_database_is_accepted_in_production() -> None:
    for url in (f"{REMOTE}?sslmode=verify-full", "postgresql://checkout@/checkout?host=/run/postgresql"):
        assert problems_of(GOOD | {"DATABASE_URL": url}) == []
    assert problems_of(SANDBOX | {"DATABASE_URL": REMOTE}) == []


def test_no_secret_is_printed() -> None:
    for name, described in TABLE.items():
        if described.is_secret:
            assert not any("se cret" in problem for problem in problems_of(GOOD | {name: "se cret\x01"}))


def test_lists_and_networks_are_read() -> None:
    read = reading.read(
        GOOD | {"WEBHOOK_SOURCE_ADDRESSES": "203.0.113.7, 2001:db8::/48", "SMS_COUNTRIES": "gb, FR"}
    )
    assert read.WEBHOOK_SOURCE_ADDRESSES == ["203.0.113.7/32", "2001:db8::/48"]
    assert read.SMS_COUNTRIES == ["GB", "FR"]


def test_defaults_fit_their_own_kind() -> None:
    """A default that is written into `.env.example` must be accepted when it is read again."""
    read = reading.read(LOCAL)
    for name, described in TABLE.items():
        if isinstance(described.default, int | str) and described.default != "":
            assert described.value_type.parse(str(described.default).lower()) == described.default, name
    assert isinstance(read, Variables)


@pytest.mark.parametrize(
    "command", [["manage.py", "check"], ["-m", "celery", "--app", "config.celery", "worker"]]
)
def test_a_process_prints_the_sentences_and_no_traceback(command: list[str]) -> None:
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=SETTINGS.parents[1],
        env={**os.environ, **GOOD, "PROVIDER_SLOTS": "0", "LIMIT_READS": "lots"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == WRONG_CONFIGURATION
    assert len(ended.stderr.splitlines()) == 2 and "PROVIDER_SLOTS must be" in ended.stderr
