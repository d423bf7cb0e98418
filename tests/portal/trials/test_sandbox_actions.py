"""The sandbox takes each of its actions in a trial once, when the action is due."""

import pytest

from payments.models import Merchant
from portal.models import Trial
from portal.trials import evidence, sandbox_actions, trial_runs
from tests.conftest import Api
from tests.portal import stage
from tests.portal.trials import backend
from tests.portal.trials.backend import Backend, order_of
from webhooks import delivery
from webhooks.models import Attempt, Delivery

pytestmark = [pytest.mark.django_db, pytest.mark.rule("trial.order")]


def trial_after_first_step(merchant: Merchant, name: str) -> Trial:
    trial = backend.begin(merchant, name)
    trial_runs.take_step(trial)
    return trial


def evidence_of(trial: Trial) -> evidence.TrialEvidence:
    assert trial.checkout_uuid is not None
    return evidence.read_evidence(trial, trial.checkout_uuid)


class TestAct:
    def test_sends_the_event_again_once_after_the_capture(self, acme: Merchant, api: Api) -> None:
        trial = trial_after_first_step(acme, "twice")
        assert not sandbox_actions.act_if_due(evidence_of(trial)), "nothing was captured yet"
        backend.send_due(Backend(api))
        assert sandbox_actions.act_if_due(evidence_of(trial)) and not sandbox_actions.act_if_due(
            evidence_of(trial)
        )
        assert Delivery.objects.get().resent_by == f"user:{trial.user_id}"

    def test_waits_while_the_event_is_being_sent(self, acme: Merchant, api: Api) -> None:
        trial = trial_after_first_step(acme, "twice")
        (claimed,) = delivery.claim(slots=1, general_slots=1)
        api.post(f"checkouts/{trial.checkout_uuid}/capture")
        assert not sandbox_actions.act_if_due(evidence_of(trial)) and claimed.attempt_number == 1

    def test_waits_for_the_real_retry_first(
        self, acme: Merchant, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        backend.answer_directly(monkeypatch, Backend(api))
        trial = trial_after_first_step(acme, "slow")
        assert order_of(trial).status == "captured"
        assert not sandbox_actions.act_if_due(evidence_of(trial))
        monkeypatch.setattr(sandbox_actions, "RETRY_AFTER", sandbox_actions.RETRY_AFTER * 0)
        assert sandbox_actions.act_if_due(evidence_of(trial))

    def test_does_not_resend_after_a_lost_first_attempt(self, acme: Merchant) -> None:
        stage.saved(acme)
        trial = trial_after_first_step(acme, "retry")
        assert Attempt.objects.get().http_status == 500
        assert not sandbox_actions.act_if_due(evidence_of(trial))
