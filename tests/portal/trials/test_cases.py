"""Before the payment in a case, the sandbox prepares the order: it splits the order, or lets a mate pledge."""

from unittest.mock import Mock

import pytest

from hosted_page.sandbox import paying
from payments.models import Merchant
from portal.models import Trial
from portal.trials import trial_runs, verdicts
from portal.trials.cases import CASES
from tests import mates
from tests.conftest import Api
from tests.portal.trials import backend
from tests.portal.trials.backend import Backend, Idle, lapse, order_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _calm_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUIET_PERIOD", verdicts.QUIET_PERIOD * 0)


def test_each_case_says_what_it_waits_for() -> None:
    assert all(case.title and case.text.endswith(".") and case.waits_for for case in CASES.values())


@pytest.mark.rule("trial.order", "pledge.captured")
class TestPledge:
    def test_passes_if_the_server_captures_once_and_the_mate_is_charged(
        self, acme: Merchant, api: Api
    ) -> None:
        def meanwhile(trial: Trial) -> None:
            mates.pump(order_of(trial).pk)

        trial = backend.walk(acme, "pledged", Backend(api), meanwhile)
        assert trial.has_passed, (trial.reason, trial.evidence)
        share = order_of(trial).payment_requests.get()
        assert share.name == "Finn" and mates.settled(share) == "reimbursed"

    def test_is_not_split_twice_if_a_step_is_repeated(
        self, acme: Merchant, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trial = backend.begin(acme, "pledged")
        with monkeypatch.context() as patched:
            patched.setattr(paying, "pay", Mock(side_effect=RuntimeError))
            trial_runs.take_step(trial)
        assert order_of(trial).payment_requests.get().status == "pledged"
        trial_runs.take_step(Trial.objects.select_related("merchant").get(pk=trial.pk))
        assert order_of(trial).status == "authorized"
        assert order_of(trial).payment_requests.get().status == "pledged"

    def test_fails_without_a_capture(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "pledged", Idle(api), lapse)
        assert trial.has_passed is False
