"""`manage.py doctor` checks the card provider and the SMS carrier. The tests also cover the whole command."""

import os
import subprocess
import sys
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings

from config.doctor import Finding, partners
from config.management.commands import doctor
from config.variables.startup import WRONG_CONFIGURATION
from hosted_page.sms import senders
from hosted_page.sms.senders.twilio import TwilioSender
from payments import provider
from payments.provider import ProviderUnreachable
from tests.config.starting import SETTINGS
from tests.hosted_page.sms.senders import doubles, twilio_double
from tests.hosted_page.sms.senders.twilio_double import ACCOUNT, KEY

pytestmark = pytest.mark.rule("environment.doctor")


def sentences(check: Any) -> str:
    return "\n".join(finding.sentence for finding in check())


class TestProvider:
    def replaced(self, monkeypatch: pytest.MonkeyPatch, missing: Any) -> str:
        monkeypatch.setattr(provider, "current_provider", lambda: SimpleNamespace(missing=missing))
        return sentences(partners.card_provider)

    def test_that_lacks_something_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.replaced(monkeypatch, lambda: ["Allow cards."]) == "Allow cards."

    def test_that_does_not_answer_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> list[str]:
            raise ProviderUnreachable

        assert "The card provider does not answer." in self.replaced(monkeypatch, fail)


class TestCarrier:
    def found(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch, token: str = KEY, url: str = ""
    ) -> str:
        settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN = ACCOUNT, token
        with doubles.serving(twilio_double.act) as double:
            sender = TwilioSender()
            sender.client.api.base_url = url or double.url
            monkeypatch.setattr(senders, "current_sender", lambda: sender)
            return sentences(partners.sms_carrier)

    def test_that_accepts_the_account_has_no_finding(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.found(settings, monkeypatch) == ""

    def test_that_refuses_the_account_is_reported(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = self.found(settings, monkeypatch, "2c" * 16)
        assert "The SMS carrier refuses the account (wrong_credentials)." in found and "2c2c" not in found

    def test_that_does_not_answer_is_reported(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = self.found(settings, monkeypatch, url=f"http://127.0.0.1:{doubles.closed_port()}")
        assert "The SMS carrier does not answer (no_connection)." in found


def test_the_command_prints_all_findings_and_fails_only_for_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {
        "one": lambda: [Finding("Mend one.")],
        "two": lambda: [Finding("Look at two.", True)],
        "three": list,
    }
    monkeypatch.setattr(doctor, "CHECKS", checks)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", stdout=out)
    assert ended.value.code == 1
    assert out.getvalue().splitlines() == [
        "PROBLEM  one: Mend one.",
        "warning  two: Look at two.",
        "ok       three",
    ]
    monkeypatch.setattr(doctor, "CHECKS", {"two": checks["two"]})
    call_command("doctor", stdout=out)


def test_the_command_prints_all_wrong_variables() -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "doctor"],
        cwd=SETTINGS.parents[1],
        env={**os.environ, "PROVIDER_SLOTS": "0", "SMS_SLOTS": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == WRONG_CONFIGURATION and len(ended.stderr.splitlines()) == 2
