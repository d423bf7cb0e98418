"""Trials: who can start one, how many are allowed, and the pump that advances them."""

import pytest
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from payments import operator_stops
from payments.models import Merchant
from portal.models import Trial
from portal.trials import sandbox_actions, trial_runs, verdicts
from portal.trials.cases import CASES
from portal.trials.trial_runs import CannotBegin, NoEndpoint
from tests import factories
from tests.portal import stage
from tests.portal.trials import backend
from tests.portal.trials.backend import order_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _calm_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUIET_PERIOD", verdicts.QUIET_PERIOD * 0)
    monkeypatch.setattr(sandbox_actions, "RETRY_AFTER", sandbox_actions.RETRY_AFTER * 0)


class TestBegin:
    def test_needs_an_endpoint(self, acme: Merchant) -> None:
        owner = stage.person(acme, "owner").user
        with pytest.raises(NoEndpoint, match="Save an endpoint first"):
            trial_runs.begin(acme, CASES["twice"], owner)
        factories.subscribe(acme, url=stage.URL, event_types=["checkout.voided"])
        with pytest.raises(NoEndpoint, match=r"does not get checkout\.authorized"):
            trial_runs.begin(acme, CASES["twice"], owner)

    @pytest.mark.rule("trial.bounds")
    def test_is_refused_while_payments_are_stopped(self, acme: Merchant) -> None:
        stage.saved(acme)
        operator_stops.suspend(acme, reason="test")
        with pytest.raises(CannotBegin, match="Payments are stopped, so no case can run"):
            trial_runs.begin(acme, CASES["twice"], stage.person(acme, "owner").user)
        assert not Trial.objects.exists()

    @pytest.mark.rule("trial.one")
    def test_starts_each_case_once_at_a_time(self, acme: Merchant) -> None:
        first, again = backend.begin(acme, "twice"), backend.begin(acme, "twice")
        other = backend.begin(acme, "retry")
        assert first.pk == again.pk != other.pk

    @pytest.mark.rule("trial.bounds")
    def test_is_limited_per_hour(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trial_runs, "LIMIT", trial_runs.LIMIT._replace(maximum=1))
        backend.begin(acme, "twice")
        with pytest.raises(CannotBegin, match="within an hour"):
            backend.begin(acme, "retry")

    @pytest.mark.rule("trial.absent")
    def test_production_does_not_advance_a_trial(self, acme: Merchant, settings: Settings) -> None:
        trial = backend.begin(acme, "twice")
        settings.SANDBOX = False
        trial_runs.run_due()
        trial.refresh_from_db()
        assert trial.checkout_uuid is None

    @pytest.mark.rule("trial.own_order")
    def test_can_pay_the_merchants_own_order(self, acme: Merchant) -> None:
        own = factories.checkout(acme)
        trial = backend.begin(acme, "twice", own.pk)
        trial_runs.take_step(trial)
        own.refresh_from_db()
        assert (own.status, trial.checkout_uuid) == ("authorized", own.pk)
        assert Checkout.objects.count() == 1

    @pytest.mark.rule("trial.own_order")
    def test_refuses_an_order_that_is_foreign_paid_or_in_use(self, acme: Merchant, rival: Merchant) -> None:
        own = factories.checkout(acme)
        backend.begin(acme, "twice", own.pk)
        for order in (own, factories.checkout(rival), stage.hold(factories.checkout(acme))):
            with pytest.raises(CannotBegin, match="can no longer be paid"):
                backend.begin(acme, "retry", order.pk)
        assert Trial.objects.count() == 1

    def test_pump_advances_each_trial(self, acme: Merchant) -> None:
        trials = [backend.begin(acme, "twice"), backend.begin(acme, "retry")]
        trial_runs.run_due()
        for trial in trials:
            trial.refresh_from_db()
            assert order_of(trial).status == "authorized" and trial.evidence
