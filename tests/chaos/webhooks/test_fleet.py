"""No event is lost during faults in real time: leases last 30 seconds, and the beat is missing for a minute."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus

import pytest

from tests.chaos.webhooks import emitting, late
from tests.chaos.webhooks import fleet as fleets
from tests.chaos.webhooks import load as loads
from tests.chaos.webhooks.emitting import Emitter
from tests.chaos.webhooks.endpoint import Endpoint, Post
from tests.chaos.webhooks.fleet import Fleet
from tests.chaos.webhooks.load import AUTHORIZED, BOTH, CAP_URGENT, VOIDED, Load
from tests.journeys import polling

pytestmark = [pytest.mark.journey, pytest.mark.long]
AT_ONCE = CAP_URGENT
PROMPT = 3.0  # even during a fault, an attempt starts at most this many seconds after it is due
ENDS_WITHIN = 30.0
LEASE_SECONDS = 30
LEASE_OVER = (LEASE_SECONDS, LEASE_SECONDS + PROMPT)


@pytest.fixture(scope="module")
def _fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, Emitter]]:
    with (
        fleets.running(tmp_path_factory.mktemp("fleet")) as fleet,
        emitting.emitting(fleet.variables) as emitter,
    ):
        yield fleet, emitter


@pytest.fixture
def fleet(_fleet: tuple[Fleet, Emitter]) -> Fleet:
    """Return a fleet with two workers, named "one" and "two", and a beat."""
    _fleet[0].make_whole()
    return _fleet[0]


@pytest.fixture
def new_load(fleet: Fleet, _fleet: tuple[Fleet, Emitter]) -> Iterator[Callable[[int], Load]]:
    """Yield a function that creates a load with the given number of endpoints.

    At the end, fail if events were lost, or if the log of attempts is wrong (see `Load.violations`).
    """
    with ExitStack() as stack:
        made: list[Load] = []

        def load(endpoints: int) -> Load:
            made.append(stack.enter_context(loads.loading(_fleet[1], fleet.rows, endpoints=endpoints)))
            return made[-1]

        yield load
        assert [rule for load in made for rule in load.violations()] == []


def refuse_some(load: Load) -> None:
    """Refuse the first attempt for half of the checkout.authorized events, so that they are sent again."""

    def status(post: Post) -> int:
        fails = post.attempt == 1 and post.event_type == AUTHORIZED and int(post.event_id[-1], 16) % 2
        return HTTPStatus.INTERNAL_SERVER_ERROR if fails else HTTPStatus.OK

    for one in load.endpoints:
        one.status = status


def is_repeated_as_planned(load: Load) -> None:
    """Check that only failed attempts were repeated, and that no attempt was lost."""
    refused = {event_id for (event_id, _), (_, status, _) in load.attempts().items() if status == 500}
    assert not load.lost() and not load.not_received()
    assert load.arrived_twice() == refused
    assert refused


class TestMinute:
    """Several faults that are tested in the same minute, to save time."""

    def test_without_a_beat_in_which_the_leases_of_a_stopped_and_a_killed_worker_run_out(
        self, fleet: Fleet, new_load: Callable[[int], Load]
    ) -> None:
        fleet.kill("beat")
        stopped, killed = new_load(1), new_load(1)
        fill(fleet, stopped, idle="two")
        late.stop_before_it_records(fleet, stopped, "one")
        fleet.thaw("two")
        fill(fleet, killed, idle=None)
        fleet.kill("two")
        killed.release()
        cut_off = [set(load.posts()) for load in (stopped, killed)]
        fleet.start_workers("three")
        others = new_load(2)
        refuse_some(others)
        others.emit(240, *BOTH, every=0.25)

        stopped.held(AT_ONCE, within=2 * LEASE_SECONDS)
        late.continue_in_vain(fleet, stopped, "one")
        stopped.release()
        others.ended(within=3 * ENDS_WITHIN)
        is_repeated_as_planned(others)
        assert others.lateness() < PROMPT
        for load, lost in zip((stopped, killed), cut_off, strict=True):
            load.ended(within=ENDS_WITHIN)
            assert load.lost() == lost and len(lost) == AT_ONCE
            assert load.arrived_twice() == {event_id for event_id, _ in lost}
            assert not load.not_received()
            first, *_, last = load.lost_after()
            assert LEASE_OVER[0] <= first <= last <= LEASE_OVER[1]


def fill(fleet: Fleet, load: Load, *, idle: str | None) -> None:
    """Pause the `idle` worker. Fill the endpoint with requests of the other worker, and emit more events."""
    if idle:
        fleet.freeze(idle)
    load.endpoints[0].hold()
    load.emit(AT_ONCE + 10, AUTHORIZED).result()
    load.held(AT_ONCE, within=ENDS_WITHIN)


@pytest.mark.rule("pump.beat")
class TestTwoBeatProcesses:
    def test_send_nothing_twice(self, fleet: Fleet, new_load: Callable[[int], Load]) -> None:
        load = new_load(2)
        refuse_some(load)
        fleet.start("second beat")
        load.emit(100, *BOTH, every=0.02)
        load.ended(within=ENDS_WITHIN)
        is_repeated_as_planned(load)
        assert load.lateness() < PROMPT
        assert fleet.are_alive(), "one of the beats has ended by itself"


class TestClockOff:
    @pytest.mark.parametrize("clock", ["+30s", "-30s"])
    def test_in_one_worker_has_no_effect(
        self, fleet: Fleet, new_load: Callable[[int], Load], clock: str
    ) -> None:
        load = new_load(2)
        refuse_some(load)
        for one in load.endpoints:
            # Slow responses ensure that each worker finds deliveries that the other worker has leased.
            one.seconds = 1.5
        fleet.kill("two")
        fleet.start_workers("off", clock=clock)
        assert fleet.seconds_ahead("off") == pytest.approx(float(clock.rstrip("s")), abs=10)
        load.emit(80, AUTHORIZED, every=0.03)
        load.ended(within=ENDS_WITHIN)
        is_repeated_as_planned(load)
        assert load.lateness() < 2 * PROMPT, "a full endpoint's next attempts wait for a place"
        fleet.freeze("one")
        alone = new_load(1)
        alone.emit(40, *BOTH)
        alone.ended(within=ENDS_WITHIN)
        assert not alone.arrived_twice() and not alone.lost() and not alone.not_received()
        assert alone.lateness() < PROMPT


@pytest.mark.rule("pump.redis")
class TestValkeyAway:
    @pytest.mark.parametrize("away", ["stop_redis", "silence_redis"])
    def test_every_event_is_sent_once_and_on_time(
        self, fleet: Fleet, new_load: Callable[[int], Load], away: str
    ) -> None:
        load = new_load(2)
        refuse_some(load)
        getattr(fleet, away)()
        load.emit(120, *BOTH, every=0.02).result()
        load.ended(within=ENDS_WITHIN)
        fleet.mend_redis()
        load.emit(60, VOIDED)
        load.ended(within=ENDS_WITHIN)
        is_repeated_as_planned(load)
        assert load.lateness() < PROMPT
        assert fleet.are_alive(), "a part has ended by itself"


class TestPostgresRestarted:
    def test_in_the_middle_of_recording_loses_and_repeats_nothing(
        self, fleet: Fleet, new_load: Callable[[int], Load]
    ) -> None:
        load = new_load(3)
        load.emit(500, *BOTH, every=0.01)
        for one, down_seconds in zip(load.endpoints, (0.5, 8.0), strict=False):
            time.sleep(1)
            restart_while_recording(fleet, load, one, down_seconds)
        load.ended(within=2 * ENDS_WITHIN)
        assert not load.arrived_twice()
        assert load.lost() == load.not_received(), "a claim whose answer PostgreSQL could not give any more"


def restart_while_recording(fleet: Fleet, load: Load, endpoint: Endpoint, down_seconds: float) -> None:
    """Stop PostgreSQL without a clean shutdown while a worker records a response. Then start PostgreSQL again."""
    endpoint.hold()
    before = len(endpoint.posts)
    polling.until(lambda: len(endpoint.posts) > before, within=ENDS_WITHIN, what="a request to hold")
    aim = f"webhook_recorded.{load.delivery_of(endpoint.posts[-1].event_id)}"
    fleet.arm(aim, "sleep 1")
    endpoint.release()
    polling.until(lambda: not fleet.is_armed(aim), within=ENDS_WITHIN, what="a record that is not committed")
    fleet.stop_postgres()
    time.sleep(down_seconds)
    fleet.start_postgres()


@pytest.mark.rule("delivery.drain")
class TestDeploy:
    def test_under_load_sends_everything_once(self, fleet: Fleet, new_load: Callable[[int], Load]) -> None:
        load = new_load(4)
        for seconds, one in zip((0.0, 0.1, 0.5, 1.5), load.endpoints, strict=True):
            one.seconds = seconds
        load.emit(600, *BOTH, every=0.02)
        for old, new in (("one", "three"), ("two", "one")):
            fleet.start_workers(new)
            assert fleet.retire(old) == 0
        load.ended(within=2 * ENDS_WITHIN)
        assert not load.arrived_twice() and not load.lost() and not load.not_received()

    def test_cuts_off_hanging_attempts_and_sends_them_again(
        self, fleet: Fleet, new_load: Callable[[int], Load]
    ) -> None:
        load = new_load(1)
        fill(fleet, load, idle="two")
        hanging = set(load.posts())
        fleet.thaw("two")
        assert fleet.retire("one") == 0
        load.release()
        load.ended(within=ENDS_WITHIN)
        assert load.lost() == hanging and len(hanging) == AT_ONCE
        assert load.arrived_twice() == {event_id for event_id, _ in hanging}
