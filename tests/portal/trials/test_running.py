"""Each case through a backend that behaves, and through one that does not."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout.models import Checkout
from payments.models import Merchant
from portal.models import Trial
from portal.trials import judging, running
from portal.trials.cases import CASES
from portal.trials.running import CannotBegin, NoEndpoint
from tests import factories
from tests.conftest import Api
from tests.portal import stage
from tests.portal.trials import backend
from tests.portal.trials.backend import Backend
from webhooks import health, subscriptions
from webhooks.models import Attempt, Delivery

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _calm_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "CALM", judging.CALM * 0)


class Forgetful(Backend):
    """Captures whenever it hears of an order, also for the second time."""

    def hear(self, event: dict[str, Any]) -> int:
        return self.take(event)


class Idle(Backend):
    """Answers 200 and captures nothing."""

    def take(self, event: dict[str, Any]) -> int:
        return 200


class Cross(Backend):
    """Answers 409 to an event that it knows."""

    def hear(self, event: dict[str, Any]) -> int:
        return 409 if event["id"] in self.seen else super().hear(event)


class Refusing(Backend):
    """Answers 400 to everything, as one does whose secret is wrong."""

    def hear(self, event: dict[str, Any]) -> int:
        return 400


def order_of(trial: Trial) -> Checkout:
    assert trial.checkout_uuid is not None
    return Checkout.objects.get(pk=trial.checkout_uuid)


def lapse(trial: Trial) -> None:
    """Let the two minutes be over."""
    checkout = order_of(trial)
    if checkout.status == "authorized":
        backend.let_lapse(checkout)


def words(trial: Trial) -> list[str]:
    return [line["words"] for line in trial.evidence]


@pytest.mark.rule("trial.order")
@pytest.mark.rule("trial.evidence")
class TestTwice:
    def test_passes_where_the_event_is_known_again(self, acme: Merchant, api: Api) -> None:
        shop = Backend(api)
        trial = backend.walk(acme, "twice", shop)
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert [event["id"] for event in shop.got] == [shop.got[0]["id"]] * 2
        assert order_of(trial).merchant_order_id == f"trial-twice-{trial.pk.hex[-8:]}"
        told = words(trial)
        assert told[0].endswith("paid with the card ending 4242, and held")
        assert "checkout.authorized, attempt 2, answered 200 in 0.34 s" in told
        assert "Your server called capture, answered 200" in told and "Captured" in told
        assert all(
            line["href"].startswith("/portal/") and line["at"].endswith("Z") for line in trial.evidence
        )

    def test_fails_where_each_delivery_is_captured(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Forgetful(api))
        assert trial.has_passed is False and trial.reason.startswith("Your server captured twice: ")

    def test_fails_where_the_second_is_refused(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Cross(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 409 when the event came again.")

    def test_fails_where_nothing_is_captured(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Idle(api), lapse)
        assert trial.has_passed is False
        assert trial.reason == (
            "No capture came within two minutes. "
            "Your server answered 200 to checkout.authorized: capture there before you answer."
        )

    def test_fails_at_once_where_the_hold_is_given_away(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Refusing(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 400 and did not capture. ")


@pytest.mark.rule("trial.first_attempt")
class TestRetry:
    def test_passes_where_the_retry_is_captured(self, acme: Merchant, api: Api) -> None:
        shop = Backend(api)
        trial = backend.walk(acme, "retry", shop)
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert len(shop.got) == 1, "the sandbox answered the first attempt itself"
        first, second = Attempt.objects.filter(event_type="checkout.authorized").order_by("number")
        assert (first.actor, first.http_status, first.error_message) == (
            "sandbox",
            500,
            "HTTP 500, made by the sandbox",
        )
        assert (second.actor, second.http_status) == ("", 200)
        assert "checkout.authorized, attempt 1: the sandbox answered 500 in your place" in words(trial)
        found = health.read(subscriptions.read(acme))
        assert (found.failing_since, found.success_rate) == (None, 1.0), "it says nothing about the endpoint"

    def test_retry_comes_at_its_own_time(self, acme: Merchant) -> None:
        trial = backend.begin(acme, "retry")
        running.step(trial)
        trial.refresh_from_db()
        (sent,) = Delivery.objects.all()
        assert sent.lease_token is None and sent.next_attempt_at is not None
        waits = (sent.next_attempt_at - order_of(trial).authorized_at).total_seconds()  # type: ignore[operator]
        assert 4 <= waits <= 6

    def test_fails_where_the_retry_is_refused(self, acme: Merchant, api: Api) -> None:
        class Broken(Backend):
            def hear(self, event: dict[str, Any]) -> int:
                return 500

        trial = backend.walk(acme, "retry", Broken(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 500 to the retry.")

    def test_fails_where_it_is_never_captured(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "retry", Idle(api), lapse)
        assert trial.has_passed is False and trial.reason.startswith("No capture came within two minutes.")

    def test_says_where_the_server_cancels(self, acme: Merchant, api: Api) -> None:
        class SoldOut(Backend):
            def take(self, event: dict[str, Any]) -> int:
                self.api.post(f"checkouts/{event['data']['checkout_uuid']}/cancel")
                return 200

        trial = backend.walk(acme, "retry", SoldOut(api))
        assert trial.has_passed is False and trial.reason.startswith("Your server cancelled the order.")


class TestBegin:
    def test_needs_an_endpoint(self, acme: Merchant) -> None:
        owner = stage.person(acme, "owner").user
        with pytest.raises(NoEndpoint, match="Save an endpoint first"):
            running.begin(acme, CASES["twice"], owner)
        factories.subscribe(acme, url=stage.URL, event_types=["checkout.voided"])
        with pytest.raises(NoEndpoint, match=r"does not get checkout\.authorized"):
            running.begin(acme, CASES["twice"], owner)

    @pytest.mark.rule("trial.one")
    def test_is_one_at_a_time(self, acme: Merchant) -> None:
        first, again = backend.begin(acme, "twice"), backend.begin(acme, "twice")
        other = backend.begin(acme, "retry")
        assert first.pk == again.pk != other.pk

    @pytest.mark.rule("trial.bounds")
    def test_is_bounded(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "LIMIT", running.LIMIT._replace(maximum=1))
        backend.begin(acme, "twice")
        with pytest.raises(CannotBegin, match="within an hour"):
            backend.begin(acme, "retry")

    @pytest.mark.rule("trial.absent")
    def test_production_runs_none(self, acme: Merchant, settings: Settings) -> None:
        trial = backend.begin(acme, "twice")
        settings.SANDBOX = False
        running.run_due()
        trial.refresh_from_db()
        assert trial.checkout_uuid is None

    def test_pump_takes_a_step_of_each(self, acme: Merchant) -> None:
        trials = [backend.begin(acme, "twice"), backend.begin(acme, "retry")]
        running.run_due()
        for trial in trials:
            trial.refresh_from_db()
            assert order_of(trial).status == "authorized" and trial.evidence


class TestJudging:
    def test_ends_what_lasts_too_long(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = backend.begin(acme, "twice")
        monkeypatch.setattr(judging, "LONGEST", judging.LONGEST * 0)
        running.step(trial)
        trial.refresh_from_db()
        assert trial.has_passed is False and trial.reason.startswith("Nothing more came")

    def test_ends_what_cannot_be_paid(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = backend.begin(acme, "twice")
        factories.stop(acme)
        running.step(trial)
        trial.refresh_from_db()
        assert trial.ended_at is None, "it is tried again"
        monkeypatch.setattr(judging, "LONGEST", judging.LONGEST * 0)
        running.step(trial)
        trial.refresh_from_db()
        assert trial.has_passed is False and trial.reason == running.UNPAID
