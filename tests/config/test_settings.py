import os
import subprocess
import sys

import pytest

from tests.config import starting
from tests.config.starting import PRODUCTION

BANK = "payments.providers.sandbox.adapter.SandboxProvider"
PAGE = "hosted_page.sms.senders.page.PageSender"

TWILIO = PRODUCTION | {
    "SMS_SENDER": "hosted_page.sms.senders.twilio.TwilioSender",
    "TWILIO_ACCOUNT_SID": "AC" + "0a" * 16,
    "TWILIO_AUTH_TOKEN": "1b" * 16,
    "TWILIO_FROM": "+15005550006",
}


@pytest.mark.rule("environment.table")
class TestTheEnvironmentTable:
    @pytest.mark.parametrize(
        "mix",
        [
            {"ENVIRONMENT": "local"},
            {"ENVIRONMENT": "sandbox", "BASE_URL": "https://sandbox.example"},
            PRODUCTION,
            PRODUCTION | {"CHECKOUT_PAGE_URL": "https://pay.example/pay"},
            PRODUCTION | {"REDIS_URL": "rediss://redis.example?ssl_cert_reqs=required"},
            PRODUCTION | {"SMS_COUNTRIES": "gb, FR"},
            PRODUCTION | {"SMS_SENDER_IDS": "GB:Checkout, US:+15550100"},
            TWILIO,
            TWILIO | {"TWILIO_FROM": "", "TWILIO_MESSAGING_SERVICE_SID": "MG" + "2c" * 16},
            PRODUCTION
            | {"STRIPE_SECRET_KEY": "rk_live_0aZ", "STRIPE_WEBHOOK_SECRET": "whsec_new, whsec_old"},
            {"ENVIRONMENT": "local", "SECRET_KEY": "x"},
        ],
    )
    def test_starts_every_listed_combination(self, mix: dict[str, str]) -> None:
        assert starting.refusal(mix) == ""

    @pytest.mark.parametrize(
        ("mix", "reason"),
        [
            (PRODUCTION | {"PROVIDER": BANK}, "PROVIDER must be the sandbox bank in local and sandbox"),
            (PRODUCTION | {"SMS_SENDER": PAGE}, "SMS_SENDER must be the page in local and sandbox"),
            (PRODUCTION | {"PROVIDER": ""}, "Set PROVIDER"),
            ({"ENVIRONMENT": "local", "PROVIDER": "adapter.of.production.Provider"}, "PROVIDER must be"),
            ({"ENVIRONMENT": "local", "PROVIDER": PRODUCTION["PROVIDER"]}, "PROVIDER must be"),
        ],
    )
    def test_refuses_any_other_combination(self, mix: dict[str, str], reason: str) -> None:
        refusal = starting.refusal(mix)
        assert reason in refusal

    def test_stops_the_process_with_the_reason(self) -> None:
        ended = subprocess.run(
            [sys.executable, "manage.py", "check"],
            cwd=starting.SETTINGS.parents[1],
            env={**os.environ, "ENVIRONMENT": "staging"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode != 0 and "ENVIRONMENT must be one of" in ended.stderr


@pytest.mark.rule("provider.live_keys")
class TestStripe:
    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"STRIPE_SECRET_KEY": ""}, "Set STRIPE_SECRET_KEY"),
            ({"STRIPE_SECRET_KEY": "sk_test_0aZ"}, "STRIPE_SECRET_KEY must be a live key"),
            ({"STRIPE_SECRET_KEY": "pk_live_0aZ"}, "STRIPE_SECRET_KEY must be a live key"),
            ({"STRIPE_PUBLISHABLE_KEY": "pk_test_0aZ"}, "STRIPE_PUBLISHABLE_KEY must be a live key"),
            ({"STRIPE_PUBLISHABLE_KEY": "sk_live_0aZ"}, "STRIPE_PUBLISHABLE_KEY must be a live key"),
            ({"STRIPE_WEBHOOK_SECRET": ""}, "Set STRIPE_WEBHOOK_SECRET"),
            ({"STRIPE_WEBHOOK_SECRET": "whsec_a,secret"}, "STRIPE_WEBHOOK_SECRET must be signing secrets"),
        ],
    )
    def test_starts_only_with_live_keys(self, changed: dict[str, str], reason: str) -> None:
        assert reason in starting.refusal(PRODUCTION | changed)

    def test_never_prints_a_key(self) -> None:
        assert "sk_test_0aZ" not in starting.refusal(PRODUCTION | {"STRIPE_SECRET_KEY": "sk_test_0aZ"})


@pytest.mark.rule("portal.second_factor")
def test_a_second_factor_is_required_outside_local() -> None:
    for hosted in (PRODUCTION, {"ENVIRONMENT": "sandbox", "BASE_URL": "https://sandbox.example"}):
        assert starting.read(hosted)["SECOND_FACTOR_REQUIRED"] is True
    assert starting.read({"ENVIRONMENT": "local"})["SECOND_FACTOR_REQUIRED"] is False
    required = {"ENVIRONMENT": "local", "SECOND_FACTOR_REQUIRED": "true"}
    assert starting.read(required)["SECOND_FACTOR_REQUIRED"] is True


@pytest.mark.rule("portal.passkeys")
def test_the_local_portal_uses_an_address_where_passkeys_work() -> None:
    local = starting.read({"ENVIRONMENT": "local", "BASE_URL": "http://127.0.0.1:9000"})
    assert local["PORTAL_URL"] == "http://localhost:9000" and local["BASE_URL"] == "http://127.0.0.1:9000"
    assert "localhost" in local["ALLOWED_HOSTS"]
    assert starting.read(PRODUCTION)["PORTAL_URL"] == "https://checkout.example"


@pytest.mark.rule("secret.cookies")
def test_cookies_are_limited_to_this_host_under_https() -> None:
    hosted = starting.read(PRODUCTION)
    kept = {hosted[f"{name}_COOKIE_NAME"] for name in ("SESSION", "CSRF", "LANGUAGE")}
    assert kept == {"__Host-sessionid", "__Host-csrftoken", "__Host-language"}
    assert hosted["COOKIE_PREFIX"] == "__Host-"
    assert hosted["SESSION_COOKIE_SECURE"] and hosted["CSRF_COOKIE_SECURE"]


@pytest.mark.rule("secret.keys")
class TestLookupKeys:
    def read(self, **variables: str) -> tuple[str, list[str]]:
        read = starting.read({"ENVIRONMENT": "local"} | variables)
        return read["LOOKUP_KEY"], read["LOOKUP_KEY_FALLBACKS"]

    def test_are_read_from_their_own_variables(self) -> None:
        assert self.read(LOOKUP_KEY="new", SECRET_KEY_FALLBACKS="former") == ("new", [])
        assert self.read(LOOKUP_KEY="new", LOOKUP_KEY_FALLBACKS="old, older") == ("new", ["old", "older"])

    def test_default_to_the_secret_key(self) -> None:
        """Without LOOKUP_KEY, SECRET_KEY is used. Rows that were written with a former SECRET_KEY are still found."""
        replaced = {"SECRET_KEY": "new", "SECRET_KEY_FALLBACKS": "old"}
        assert self.read(LOOKUP_KEY="", **replaced) == ("new", ["old"])
        assert self.read(LOOKUP_KEY="", LOOKUP_KEY_FALLBACKS="older", **replaced) == ("new", ["older", "old"])
