"""The evidence of a trial, as sentences."""

import pytest

from payments.models import Merchant
from portal.models import Trial
from portal.trials import evidence, trial_runs
from tests import factories
from tests.conftest import Api
from tests.portal import stage
from tests.portal.trials import backend
from tests.portal.trials.backend import Backend

pytestmark = pytest.mark.django_db


def evidence_lines(trial: Trial) -> list[evidence.Line]:
    trial.refresh_from_db()
    assert trial.checkout_uuid is not None
    return evidence.evidence_in_words(evidence.read_evidence(trial, trial.checkout_uuid))


@pytest.mark.rule("trial.evidence")
class TestLines:
    def test_are_sorted_by_time_and_link_to_their_pages(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Backend(api))
        lines = evidence_lines(trial)
        assert lines == sorted(lines, key=lambda line: line.at)
        places = {line.href.partition("?")[0].rsplit("/", 1)[0] for line in lines}
        assert places == {"/portal/checkouts", "/portal/deliveries", "/portal"}

    def test_show_the_error_code_of_a_refused_call(self, acme: Merchant, api: Api) -> None:
        trial = backend.begin(acme, "twice")
        trial_runs.take_step(trial)
        api.post(f"checkouts/{trial.checkout_uuid}/capture", {"amount": 1})
        (line,) = [line for line in evidence_lines(trial) if "capture" in line.words]
        assert line.words == "Your server called capture; we answered 422 partial_capture_not_supported"
        assert line.href.startswith("/portal/requests?q=")

    def test_show_the_error_of_an_attempt(self, acme: Merchant) -> None:
        trial = backend.begin(acme, "twice")
        trial_runs.take_step(trial)
        stage.deliver(acme, None, "could not connect")
        assert "checkout.authorized, attempt 1, no answer: could not connect" in [
            line.words for line in evidence_lines(trial)
        ]

    def test_show_only_this_order(self, acme: Merchant, api: Api) -> None:
        trial = backend.begin(acme, "twice")
        trial_runs.take_step(trial)
        other = stage.hold(factories.checkout(acme))
        api.post(f"checkouts/{other.pk}/capture")
        assert not [
            line for line in evidence_lines(trial) if str(other.pk) in line.href or "capture" in line.words
        ]

    def test_have_a_maximum_number(self, acme: Merchant, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(evidence, "MAX_SHOWN", 3)
        trial = backend.begin(acme, "twice")
        trial_runs.take_step(trial)
        for _ in range(5):
            api.post(f"checkouts/{trial.checkout_uuid}/capture", {"amount": 1})
        assert len(evidence_lines(trial)) == 3
