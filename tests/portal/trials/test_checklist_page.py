"""The checklist's page: the next step, the finished steps, and the page in production."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from payments.models import Merchant
from portal.models import Role, Trial
from portal.trials import checklist_page, trial_runs
from portal.trials.cases import CASES
from tests import factories
from tests.conftest import Api
from tests.portal import stage
from tests.portal.trials import backend
from webhooks import endpoint_tests, subscriptions
from webhooks.models import Attempt

pytestmark = pytest.mark.django_db


class Failing(backend.Backend):
    def __init__(self) -> None: ...

    def receive(self, event: dict[str, Any]) -> int:
        return 500


def end(trial: Trial, *, has_passed: bool) -> None:
    Trial.objects.filter(pk=trial.pk).update(
        ended_at=trial.created_at, has_passed=has_passed, next_look_at=None
    )


@pytest.mark.rule("trial.evidence")
class TestProgress:
    def test_has_each_case_once(self, acme: Merchant) -> None:
        progress = checklist_page.checklist_with_cases(acme)
        names = [step.name for step in progress.steps] + [one.case.name for one in progress.cases]
        assert len(names) == len(set(names)) == progress.total == 14
        assert progress.count_words == ("five", "nine")
        assert "refund" in names, "a case of its own does not hide a step"
        assert {"twice", "rotate"} < set(CASES) == {one.case.name for one in progress.cases}

    @pytest.mark.rule("trial.absent")
    def test_has_only_the_steps_in_production(self, acme: Merchant, settings: Settings) -> None:
        settings.SANDBOX = False
        progress = checklist_page.checklist_with_cases(acme)
        assert (len(progress.steps), progress.cases, progress.own) == (7, [], None)

    def test_names_a_case_as_next_once_the_steps_are_done(self, acme: Merchant, api: Api) -> None:
        assert checklist_page.checklist_with_cases(acme).next_case is None
        stage.saved(acme)
        endpoint_tests.send_test_event(acme)
        stage.deliver(acme, 200)
        stage.captured(acme)
        progress = checklist_page.Progress([], checklist_page.checklist_with_cases(acme).cases)
        assert progress.next_case is progress.cases[0]
        begun = backend.begin(acme, "twice")
        assert (
            checklist_page.Progress([], checklist_page.checklist_with_cases(acme).cases).next_case is None
        ), "while one runs"
        end(begun, has_passed=True)
        progress = checklist_page.Progress([], checklist_page.checklist_with_cases(acme).cases)
        assert progress.next_case is progress.cases[1] and progress.done == 1

    def test_a_running_case_shows_how_often_the_server_failed(self, acme: Merchant) -> None:
        trial = backend.begin(acme, "twice")
        trial_runs.take_step(trial)
        assert checklist_page.checklist_with_cases(acme).cases[0].trouble == ""
        for often in ("", " twice", " three times"):
            backend.send_due(Failing())
            assert f"500{often}. " not in checklist_page.checklist_with_cases(acme).cases[0].trouble, (
                "nor do the lines show it yet"
            )
            trial_runs.take_step(trial)
            trouble = checklist_page.checklist_with_cases(acme).cases[0].trouble
            assert trouble.startswith(f"Your server answered 500{often}. Fix it: the next attempt is at ")
        end(trial, has_passed=False)
        assert checklist_page.checklist_with_cases(acme).cases[0].trouble == ""

    def test_a_running_case_shows_the_end_of_its_hold(self, acme: Merchant) -> None:
        trial = backend.begin(acme, "twice")
        assert checklist_page.checklist_with_cases(acme).cases[0].capture_by is None, "nothing is paid yet"
        trial_runs.take_step(trial)
        held = Checkout.objects.get()
        assert (
            checklist_page.checklist_with_cases(acme).cases[0].capture_by == held.capture_before is not None
        )
        Checkout.objects.update(capture_before=held.authorized_at)
        assert checklist_page.checklist_with_cases(acme).cases[0].capture_by is None

    def test_a_case_whose_latest_run_failed_is_not_done_until_it_passes(self, acme: Merchant) -> None:
        def is_done() -> list[str]:
            counted = checklist_page.checklist_counts(acme).cases
            shown = checklist_page.checklist_with_cases(acme).cases
            names = [one.case.name for one in shown if one.is_done]
            assert names == [one.case.name for one in counted if one.is_done], "home counts the same"
            return names

        end(backend.begin(acme, "twice"), has_passed=True)
        assert is_done() == ["twice"]
        again = backend.begin(acme, "twice")
        assert is_done() == ["twice"], "while it runs again"
        end(again, has_passed=False)
        assert is_done() == []
        one = checklist_page.checklist_with_cases(acme).cases[0]
        assert one.has_failed and one.passed is not None, "its earlier evidence stays"
        end(backend.begin(acme, "twice"), has_passed=True)
        assert is_done() == ["twice"]

    def test_a_failed_run_overrides_real_traffic(self, acme: Merchant) -> None:
        stage.saved(acme)
        subscriptions.rotate(acme)
        endpoint_tests.send_test_event(acme)
        stage.deliver(acme, 200)
        end(backend.begin(acme, "rotate"), has_passed=False)
        (one,) = [one for one in checklist_page.checklist_with_cases(acme).cases if one.case.name == "rotate"]
        assert one.ticked_at and not one.is_done
        assert "rotate" not in [x.case.name for x in checklist_page.checklist_counts(acme).cases if x.is_done]
        page = stage.browser(stage.person(acme, Role.OWNER)).get("/portal/checklist").content.decode()
        assert "Not passed" in page and ">Shown by your traffic," not in page

    def test_real_traffic_ticks_a_case_too(self, acme: Merchant) -> None:
        stage.saved(acme)
        subscriptions.rotate(acme)
        endpoint_tests.send_test_event(acme)
        stage.deliver(acme, 200)
        (one,) = [one for one in checklist_page.checklist_with_cases(acme).cases if one.case.name == "rotate"]
        assert one.is_done and one.latest is None and one.ticked_at == Attempt.objects.get().started_at

    @pytest.mark.rule("trial.own_order")
    def test_offers_the_newest_unpaid_order(self, acme: Merchant) -> None:
        factories.checkout(acme, merchant_order_id="trial-twice-1")
        assert checklist_page.checklist_with_cases(acme).own is None
        factories.checkout(acme)
        newest = factories.checkout(acme)
        found = checklist_page.checklist_with_cases(acme, is_own=True)
        assert found.own == newest == found.order and checklist_page.checklist_with_cases(acme).order is None
