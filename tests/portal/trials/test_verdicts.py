"""The verdict for each case, with a correct backend and with faulty ones."""

from datetime import timedelta
from typing import Any

import pytest

from checkout.models import Refund
from config.lib import clock
from hosted_page.sandbox import advancing
from payments.models import Merchant
from payments.providers.sandbox.models import Charge
from portal.models import Trial
from portal.trials import sandbox_actions, trial_runs, verdicts
from portal.trials.trial_runs import NoEndpoint
from tests import factories, mates
from tests.conftest import Api
from tests.portal import stage
from tests.portal.trials import backend
from tests.portal.trials.backend import (
    Backend,
    Cross,
    Forgetful,
    Idle,
    Refusing,
    lapse,
    order_of,
    words,
)
from webhooks import health, subscriptions
from webhooks.models import Attempt, Delivery

pytestmark = pytest.mark.django_db


def captured_first(api: Api, name: str, times: int = 1) -> Trial:
    """Run a case in which the server finds the hold in a list, and captures it before the event arrives.

    The server sends `times` captures between the sandbox's first two steps.
    """
    trial = backend.begin(api.merchant, name)
    trial_runs.take_step(trial)
    for _ in range(times):
        api.post(f"checkouts/{order_of(trial).pk}/capture")
    trial_runs.take_step(trial)
    trial.refresh_from_db()
    return trial


@pytest.fixture(autouse=True)
def _calm_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUIET_PERIOD", verdicts.QUIET_PERIOD * 0)
    monkeypatch.setattr(sandbox_actions, "RETRY_AFTER", sandbox_actions.RETRY_AFTER * 0)


@pytest.mark.rule("trial.order")
@pytest.mark.rule("trial.evidence")
class TestTwice:
    def test_passes_if_the_server_recognises_the_event(self, acme: Merchant, api: Api) -> None:
        shop = Backend(api)
        trial = backend.walk(acme, "twice", shop)
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert [event["id"] for event in shop.got] == [shop.got[0]["id"]] * 2
        assert order_of(trial).merchant_order_id == f"trial-twice-{trial.pk.hex[-8:]}"
        told = words(trial)
        assert told[0].endswith("paid with the card ending 4242, and held")
        assert "checkout.authorized, attempt 2, answered 200 in 340\N{NO-BREAK SPACE}ms" in told
        assert "Your server called capture; we answered 200" in told and "Captured" in told
        assert all(
            line["href"].startswith("/portal/") and line["at"].endswith("Z") for line in trial.evidence
        )

    def test_fails_if_each_delivery_is_captured(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Forgetful(api))
        assert trial.has_passed is False and trial.reason.startswith("Your server captured twice: ")

    def test_fails_if_the_second_delivery_is_refused(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Cross(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 409 when the event came again.")

    def test_fails_if_the_server_does_not_capture(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Idle(api), lapse)
        assert trial.has_passed is False
        assert trial.reason == (
            "No capture came within two minutes. "
            "Your server answered 200 to checkout.authorized: capture there before you answer."
        )

    def test_fails_at_once_if_the_server_refuses_without_a_capture(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "twice", Refusing(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 400 and did not capture. ")


@pytest.mark.rule("trial.first_attempt")
class TestRetry:
    def test_passes_if_the_server_captures_at_the_retry(self, acme: Merchant, api: Api) -> None:
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
        found = health.read_health(subscriptions.read_subscription(acme))
        assert (found.failing_since, found.success_rate) == (None, 1.0), "it says nothing about the endpoint"

    def test_passes_if_the_server_captures_before_the_retry(self, acme: Merchant, api: Api) -> None:
        trial = captured_first(api, "retry")
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert Delivery.objects.get().status == "superseded" and Attempt.objects.count() == 1

    def test_fails_if_the_server_captures_twice_before_the_retry(self, acme: Merchant, api: Api) -> None:
        assert captured_first(api, "retry", times=2).has_passed is False

    def test_retry_is_sent_at_its_planned_time(self, acme: Merchant) -> None:
        trial = backend.begin(acme, "retry")
        trial_runs.take_step(trial)
        trial.refresh_from_db()
        (sent,) = Delivery.objects.all()
        assert sent.lease_token is None and sent.next_attempt_at is not None
        waits = (sent.next_attempt_at - order_of(trial).authorized_at).total_seconds()  # type: ignore[operator]
        assert 4 <= waits <= 6

    def test_fails_if_the_retry_is_refused(self, acme: Merchant, api: Api) -> None:
        class Broken(Backend):
            def receive(self, event: dict[str, Any]) -> int:
                return 500

        trial = backend.walk(acme, "retry", Broken(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 500 to the retry.")

    def test_fails_if_the_server_never_captures(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "retry", Idle(api), lapse)
        assert trial.has_passed is False and trial.reason.startswith("No capture came within two minutes.")

    def test_reports_that_the_server_cancelled(self, acme: Merchant, api: Api) -> None:
        class SoldOut(Backend):
            def take(self, event: dict[str, Any]) -> int:
                self.api.post(f"checkouts/{event['data']['checkout_uuid']}/cancel")
                return 200

        trial = backend.walk(acme, "retry", SoldOut(api))
        assert trial.has_passed is False and trial.reason.startswith("Your server cancelled the order.")


@pytest.mark.rule("trial.bounds")
class TestCaptureBeforeTheCase:
    def test_fails_a_rotation(self, acme: Merchant, api: Api) -> None:
        trial = captured_first(api, "rotate")
        assert trial.has_passed is False and trial.reason.startswith(
            "Your server listed its holds and captured"
        )

    def test_fails_a_lapse(self, acme: Merchant, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        # The server captures before the sandbox lets the time pass.
        monkeypatch.setattr(advancing, "advance", lambda *_: None)
        trial = captured_first(api, "lapse")
        assert trial.has_passed is False and trial.reason.startswith(
            "Your server listed its holds and captured"
        )


@pytest.mark.rule("trial.first_attempt")
class TestSlow:
    def walk(self, shop: Backend, monkeypatch: pytest.MonkeyPatch) -> Trial:
        backend.answer_directly(monkeypatch, shop)
        return backend.walk(
            shop.api.merchant, "slow", shop, lapse if isinstance(shop, Idle) else lambda _: None
        )

    def test_passes_if_the_server_captures_once(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        shop = Backend(api)
        trial = self.walk(shop, monkeypatch)
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert len(shop.got) == 2, "its capture ended the retries: the sandbox sends the event again"
        told = words(trial)
        assert "checkout.authorized, attempt 1: the sandbox dropped your answer" in told
        assert "checkout.authorized, attempt 2, answered 200 in 340\N{NO-BREAK SPACE}ms" in told

    def test_passes_if_only_the_retry_captures(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        class Interrupted(Backend):
            """A backend that does not capture at the first attempt, as if the sandbox had interrupted it."""

            def receive(self, event: dict[str, Any]) -> int:
                self.got.append(event)
                return self.take(event) if len(self.got) > 1 else 200

        trial = self.walk(Interrupted(api), monkeypatch)
        assert trial.has_passed and trial.acted_at is None, "the retry was the real one"

    def test_fails_if_the_server_captures_twice(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = self.walk(Forgetful(api), monkeypatch)
        assert trial.has_passed is False and trial.reason.startswith("Your server captured twice: ")

    def test_fails_if_the_server_does_not_capture(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = self.walk(Idle(api), monkeypatch)
        assert trial.has_passed is False and trial.reason.startswith("No capture came within two minutes.")

    def test_reports_an_unreachable_server(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "slow", Backend(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server could not be reached (could not connect).")


@pytest.mark.rule("trial.order")
class TestLapse:
    def walk(self, shop: Backend, monkeypatch: pytest.MonkeyPatch) -> Trial:
        backend.answer_directly(monkeypatch, shop)
        return backend.walk(shop.api.merchant, "lapse", shop)

    def test_passes_if_the_capture_is_refused(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        shop = Backend(api)
        trial = self.walk(shop, monkeypatch)
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert [event["type"] for event in shop.got] == ["checkout.authorized", "checkout.voided"]
        checkout = order_of(trial)
        assert (checkout.status, checkout.void_reason) == ("voided", "auth_expired")
        told = words(trial)
        assert "Your server called capture; we answered 409 not_capturable" in told
        assert (
            "checkout.authorized, kept back by the sandbox, answered 200 in 340\N{NO-BREAK SPACE}ms" in told
        )
        assert "Released: no money was taken" in told

    def test_passes_if_the_server_does_not_capture(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.walk(Idle(api), monkeypatch).has_passed

    def test_fails_if_the_release_event_is_refused(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        class Deaf(Backend):
            def receive(self, event: dict[str, Any]) -> int:
                return 404 if event["type"] == "checkout.voided" else super().receive(event)

        trial = self.walk(Deaf(api), monkeypatch)
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 404 to checkout.voided.")

    def test_fails_if_the_late_event_gets_no_response(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "lapse", Backend(api))
        assert trial.has_passed is False
        assert trial.reason.startswith(
            "Your server gave no answer to checkout.authorized (could not connect)."
        )

    def test_needs_a_subscription_to_the_release_event(self, acme: Merchant) -> None:
        factories.subscribe(acme, url=stage.URL, event_types=["checkout.authorized"])
        with pytest.raises(NoEndpoint, match=r"does not get checkout\.voided"):
            backend.begin(acme, "lapse")


@pytest.mark.rule("trial.order")
class TestRotate:
    def test_passes_if_an_event_signed_with_both_secrets_is_accepted(self, acme: Merchant, api: Api) -> None:
        stage.saved(acme)
        subscriptions.rotate(acme)
        trial = backend.walk(acme, "rotate", Backend(api))
        assert trial.has_passed, (trial.reason, trial.evidence)
        assert "2 secrets signed the event" in words(trial)

    def test_fails_if_the_signature_is_refused(self, acme: Merchant, api: Api) -> None:
        stage.saved(acme)
        subscriptions.rotate(acme)
        trial = backend.walk(acme, "rotate", Refusing(api))
        assert trial.has_passed is False
        assert trial.reason.startswith("Your server answered 400 to an event that both secrets signed.")

    def test_fails_if_only_one_secret_signs(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "rotate", Backend(api))
        assert trial.has_passed is False and trial.reason.startswith("Only one secret signed")

    def test_fails_if_the_server_does_not_capture(self, acme: Merchant, api: Api) -> None:
        stage.saved(acme)
        subscriptions.rotate(acme)
        trial = backend.walk(acme, "rotate", Idle(api), lapse)
        assert trial.has_passed is False and trial.reason.startswith("No capture came within two minutes.")


@pytest.mark.rule("trial.order")
@pytest.mark.rule("trial.reads")
class TestRefund:
    def walk(self, api: Api, look: str, monkeypatch: pytest.MonkeyPatch) -> Trial:
        """Run the case `refused`. Once the refund has failed, the server requests the path `look`.

        If `look` is empty, the server makes no request, and the period for this request ends immediately.
        """
        monkeypatch.setattr(
            verdicts, "LISTING_PERIOD", verdicts.QUIET_PERIOD if look else verdicts.LISTING_PERIOD * 0
        )

        def meanwhile(trial: Trial) -> None:
            mates.pump(order_of(trial).pk)
            if look and Refund.objects.filter(checkout=trial.checkout_uuid, status="failed").exists():
                api.get(look.format(uuid=trial.checkout_uuid))

        return backend.walk(api.merchant, "refused", Backend(api), meanwhile)

    @pytest.mark.parametrize("look", ["checkouts", "checkouts/{uuid}"])
    def test_passes_if_the_server_reads_the_order(
        self, api: Api, look: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verdicts, "QUIET_PERIOD", timedelta(minutes=5))
        trial = self.walk(api, look, monkeypatch)
        assert trial.has_passed, (trial.reason, trial.evidence)
        told = words(trial)
        assert "The sandbox began a refund" in told and "Your server read the order; we answered 200" in told
        assert "The bank refused the refund: the order is captured again" in told

    def test_fails_if_the_server_never_reads_the_order(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trial = self.walk(api, "", monkeypatch)
        assert trial.has_passed is False and trial.reason.startswith(
            "The refund failed, and your server did not"
        )

    def test_fails_if_the_server_does_not_capture(self, acme: Merchant, api: Api) -> None:
        trial = backend.walk(acme, "refused", Idle(api), lapse)
        assert trial.has_passed is False and trial.reason.startswith("No capture came within two minutes.")


@pytest.mark.rule("trial.order")
class TestDoubt:
    @staticmethod
    def finish(trial: Trial) -> None:
        """Let the bank respond again, and run the pump, which looks up the operation."""
        Charge.objects.update(silent_until=clock.now())
        mates.pump(order_of(trial).pk)

    def test_passes_if_the_server_reads_the_order_again(self, acme: Merchant, api: Api) -> None:
        def meanwhile(trial: Trial) -> None:
            self.finish(trial)
            if order_of(trial).status == "captured":
                api.get(f"checkouts/{trial.checkout_uuid}")

        trial = backend.walk(acme, "lost", Backend(api), meanwhile)
        assert trial.has_passed, (trial.reason, trial.evidence)
        told = words(trial)
        assert "Your server called capture; we answered 504 outcome_unknown" in told
        assert "Your server read the order; we answered 200" in told

    def test_fails_if_the_server_does_not_read_the_order(
        self, acme: Merchant, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verdicts, "LISTING_PERIOD", verdicts.LISTING_PERIOD * 0)
        trial = backend.walk(acme, "lost", Backend(api), self.finish)
        assert trial.has_passed is False and trial.reason.startswith(
            "The capture’s answer was lost, and your"
        )


class TestEnd:
    def test_ends_a_trial_that_lasts_too_long(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = backend.begin(acme, "twice")
        monkeypatch.setattr(verdicts, "LONGEST", verdicts.LONGEST * 0)
        trial_runs.take_step(trial)
        trial.refresh_from_db()
        assert trial.has_passed is False and trial.reason.startswith(
            "15 minutes have passed without your capture, then your 2xx"
        )

    def test_ends_a_trial_that_cannot_be_paid(self, acme: Merchant, monkeypatch: pytest.MonkeyPatch) -> None:
        trial = backend.begin(acme, "twice")
        factories.stop(acme)
        trial_runs.take_step(trial)
        trial.refresh_from_db()
        assert trial.ended_at is None, "it is tried again"
        monkeypatch.setattr(verdicts, "LONGEST", verdicts.LONGEST * 0)
        trial_runs.take_step(trial)
        trial.refresh_from_db()
        assert trial.has_passed is False and trial.reason == trial_runs.UNPAID
