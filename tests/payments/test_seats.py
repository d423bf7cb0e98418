"""At most half of a process's threads wait for the provider."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from checkout import finishing, tasks, transitions
from checkout.models import Checkout
from payments.models import Operation
from payments.provider import CardUse, Outcome
from payments.providers.sandbox import bank, line, misbehaving
from payments.seats import ProviderBusy, Seat
from tests.conftest import Api
from tests.factories import CAUSE, CustomerFactory
from tests.refusals import nothing_moves, refused


@pytest.fixture
def full(settings: Settings) -> Iterator[ExitStack]:
    """Everybody's seat is taken, until the stack is closed."""
    with ExitStack() as others:
        for _ in range(settings.PROVIDER_SEATS):
            others.enter_context(Seat()).take()
        yield others
    assert free_seats() == settings.PROVIDER_SEATS, "a seat was lost"


def free_seats() -> int:
    with ExitStack() as taken:
        count = 0
        while taken.enter_context(Seat()).is_taken():
            count += 1
        return count


class TestSeat:
    def test_there_are_as_many_as_the_setting_says(self, settings: Settings) -> None:
        assert free_seats() == settings.PROVIDER_SEATS == 4

    def test_is_refused_when_all_are_taken_and_free_again(self, full: ExitStack) -> None:
        with Seat() as seat:
            assert not seat.is_taken()
            with pytest.raises(ProviderBusy):
                seat.take()
            full.close()
            seat.take()

    def test_is_taken_once_however_often_it_is_asked_for(self, settings: Settings) -> None:
        with Seat() as seat:
            assert seat.is_taken() and seat.is_taken()
            seat.take()
            assert free_seats() == settings.PROVIDER_SEATS - 1
        assert free_seats() == settings.PROVIDER_SEATS

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_is_given_back_whatever_happens(self, settings: Settings, error: type[BaseException]) -> None:
        for _ in range(settings.PROVIDER_SEATS + 1):
            with pytest.raises(error), Seat() as seat:
                seat.take()
                raise error
        assert free_seats() == settings.PROVIDER_SEATS

    def test_is_never_anothers_though_many_ask_at_once(self, settings: Settings) -> None:
        got: list[bool] = []
        start, enough = threading.Barrier(20), threading.Barrier(20)

        def ask() -> None:
            with Seat() as seat:
                start.wait(5)
                got.append(seat.is_taken())
                enough.wait(5)

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
        assert sum(got) == settings.PROVIDER_SEATS and len(got) == 20
        assert free_seats() == settings.PROVIDER_SEATS


@pytest.mark.django_db
class TestWithoutASeat:
    def test_a_capture_is_a_503_and_works_when_repeated(
        self, api: Api, held: Checkout, full: ExitStack
    ) -> None:
        with nothing_moves():
            answer = api.post(f"checkouts/{held.pk}/capture")
        refused(answer, 503, "service_unavailable")
        assert answer["Retry-After"] == "1"
        full.close()
        again = api.post(f"checkouts/{held.pk}/capture")
        assert (again.status_code, again.json()["data"]["status"]) == (200, "captured")

    def test_a_payment_is_refused_and_the_card_can_be_used_when_repeated(
        self, unpaid: Checkout, full: ExitStack
    ) -> None:
        card = CardUse(bank.tokenise(subject=unpaid.pk, number="4242424242424242"))
        lead = CustomerFactory.create()
        with nothing_moves(), pytest.raises(ProviderBusy):
            transitions.authorize(unpaid.pk, card=card, lead=lead, cause=CAUSE)
        full.close()
        transitions.authorize(unpaid.pk, card=card, lead=lead, cause=CAUSE)
        unpaid.refresh_from_db()
        assert unpaid.status == "authorized"

    def test_reads_cancels_and_refunds_go_on(self, api: Api, held: Checkout, full: ExitStack) -> None:
        assert api.get(f"checkouts/{held.pk}").status_code == 200
        assert api.post(f"checkouts/{held.pk}/cancel").status_code == 200

    def test_a_captured_checkout_needs_none(self, api: Api, captured: Checkout, full: ExitStack) -> None:
        with nothing_moves():
            answer = api.post(f"checkouts/{captured.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")
        refund = api.post(f"checkouts/{captured.pk}/refund", {"merchant_refund_ref": "r-1"})
        assert refund.status_code == 204

    def test_the_pump_leaves_everything_due(self, held: Checkout, full: ExitStack) -> None:
        transitions.cancel(held.merchant, held.pk, cause=CAUSE)
        with nothing_moves():
            tasks.finish_operations()
            finishing.finish_now(held.pk)
        full.close()
        tasks.finish_operations()
        assert Operation.objects.get(kind="void").state == "succeeded"


@pytest.mark.django_db
class TestJoining:
    @pytest.fixture
    def doubtful(self, held: Checkout) -> Checkout:
        """A capture that got no answer is open."""
        misbehaving.set_fault(verb="capture", mode="down", times=1)
        with pytest.raises(transitions.OutcomeUnknown):
            transitions.capture(held.merchant, held.pk, cause=CAUSE)
        return held

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What the provider is asked."""
        verbs: list[str] = []
        money = line.money

        def heard(verb: str, **rest: Any) -> Outcome:
            verbs.append(verb)
            return money(verb, **rest)

        monkeypatch.setattr(line, "money", heard)
        return verbs

    def test_waits_in_a_seat_and_is_told_to_come_again(
        self,
        api: Api,
        doubtful: Checkout,
        asked: list[str],
        settings: Settings,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        free: list[int] = []
        monkeypatch.setattr(transitions, "JOIN_SECONDS", 0.15)
        monkeypatch.setattr(transitions, "time", SimpleNamespace(sleep=lambda _: free.append(free_seats())))
        with nothing_moves():
            answer = api.post(f"checkouts/{doubtful.pk}/capture")
        refused(answer, 409, "operation_in_progress")
        assert (answer["Retry-After"], asked) == ("1", [])
        assert set(free) == {settings.PROVIDER_SEATS - 1} and free_seats() == settings.PROVIDER_SEATS

    def test_gets_the_answer_when_it_comes(
        self, api: Api, doubtful: Checkout, asked: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def pump(_: float) -> None:
            Operation.objects.filter(ended_at=None).update(next_attempt_at="2020-01-01T00:00Z")
            tasks.finish_operations()

        monkeypatch.setattr(transitions, "time", SimpleNamespace(sleep=pump))
        answer = api.post(f"checkouts/{doubtful.pk}/capture")
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, "captured")
        assert asked == ["capture"] and Operation.objects.filter(kind="capture").count() == 1

    def test_without_a_seat_is_told_to_come_again_at_once(
        self, api: Api, doubtful: Checkout, asked: list[str], full: ExitStack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slept: list[float] = []
        monkeypatch.setattr(transitions, "time", SimpleNamespace(sleep=slept.append))
        with nothing_moves():
            answer = api.post(f"checkouts/{doubtful.pk}/capture")
        refused(answer, 409, "operation_in_progress")
        assert (asked, slept) == ([], [])

    def test_leaves_half_of_the_seats_to_those_who_have_calls_to_make(self, settings: Settings) -> None:
        half = settings.PROVIDER_SEATS // 2
        with ExitStack() as stack:
            seats = [stack.enter_context(Seat(is_joining=True)) for _ in range(settings.PROVIDER_SEATS)]
            assert [seat.is_taken() for seat in seats] == [True] * half + [False] * half
            assert free_seats() == half
        assert free_seats() == settings.PROVIDER_SEATS
