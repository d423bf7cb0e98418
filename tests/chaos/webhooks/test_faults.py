"""No event is lost if a fault happens during its delivery. The tests end leases early to save time."""

from collections.abc import Iterator

import pytest

from tests.chaos.webhooks import emitting, late
from tests.chaos.webhooks import load as loads
from tests.chaos.webhooks.emitting import Emitter
from tests.chaos.webhooks.load import AUTHORIZED, BOTH, CAP_URGENT, Load
from tests.chaos.world import World
from tests.journeys import polling
from tests.journeys.service import Service

pytestmark = [pytest.mark.journey, pytest.mark.long]
AT_ONCE = CAP_URGENT
ENDS_WITHIN = 20.0
WORKERS = ("worker", "second worker")


@pytest.fixture(scope="module")
def emitter(whole: tuple[World, Service]) -> Iterator[Emitter]:
    with emitting.emitting(whole[0].variables) as emitter:
        yield emitter


@pytest.fixture
def world(whole: tuple[World, Service]) -> Iterator[World]:
    """Yield the running service. At the end, resume all workers that are still paused."""
    yield whole[0]
    for worker in WORKERS:
        whole[0].thaw(worker)


@pytest.fixture
def load(world: World, emitter: Emitter) -> Iterator[Load]:
    """Yield a load with one endpoint. At the end, check that all events have arrived there."""
    with loads.loading(emitter, world.rows, endpoints=1) as load:
        yield load
        assert load.violations() == []


def held_by_worker(world: World, load: Load, count: int) -> None:
    """Emit `count` events. Fill the endpoint with requests of one worker while the other worker is paused."""
    world.freeze("second worker")
    load.endpoints[0].hold()
    load.emit(count, AUTHORIZED).result()
    load.held(AT_ONCE, within=ENDS_WITHIN)
    world.thaw("second worker")


@pytest.mark.rule("delivery.once", "pump.redis")
class TestValkeyFlushed:
    def test_under_load_nothing_is_lost_and_nothing_sent_twice(self, world: World, load: Load) -> None:
        load.emit(20, *BOTH).result()
        for worker in WORKERS:
            world.freeze(worker)
        load.emit(40, *BOTH).result()
        # This also deletes the wake-up messages that the paused workers have not received yet.
        world.flush_redis()
        for worker in WORKERS:
            world.thaw(worker)
        load.ended(within=ENDS_WITHIN)
        assert not load.arrived_twice() and not load.lost()


class TestWorkerStopped:
    def test_past_its_lease_cannot_record_its_late_results(self, world: World, load: Load) -> None:
        held_by_worker(world, load, AT_ONCE)
        cut_off = set(load.posts())
        late.stop_before_it_records(world, load, "worker")
        load.end_leases()
        polling.until(lambda: load.lost() == cut_off, within=ENDS_WITHIN, what="the end of the leases")
        load.advance()
        load.held(AT_ONCE, within=ENDS_WITHIN)
        late.continue_in_vain(world, load, "worker")
        load.release()
        load.ended(within=ENDS_WITHIN)
        assert load.lost() == cut_off
        assert set(load.posts()) - cut_off == {(event_id, 2) for event_id, _ in cut_off}


class TestWorkerKilled:
    def test_while_the_receiver_holds_its_requests(self, world: World, load: Load) -> None:
        held_by_worker(world, load, AT_ONCE + 10)
        cut_off = set(load.posts())
        world.kill("worker")
        load.release()
        load.end_leases()
        load.ended(within=ENDS_WITHIN, advanced=True)
        assert load.lost() == cut_off and len(cut_off) == AT_ONCE
        assert load.arrived_twice() == {event_id for event_id, _ in cut_off}

    @pytest.mark.parametrize(
        "point", ["webhook_answered", pytest.param("webhook_recorded", marks=pytest.mark.long)]
    )
    def test_between_the_response_and_its_record(self, world: World, load: Load, point: str) -> None:
        load.endpoints[0].hold()
        load.emit(AT_ONCE, AUTHORIZED).result()
        load.held(AT_ONCE, within=ENDS_WITHIN)
        answered = load.posts()[0]
        aim = f"{point}.{load.delivery_of(answered[0])}"
        world.arm(aim, "kill")
        load.release()
        polling.until(lambda: not world.is_armed(aim), within=ENDS_WITHIN, what=f"death at {point}")
        load.end_leases()
        load.ended(within=ENDS_WITHIN, advanced=True)
        assert answered in load.lost()
        assert load.arrived_twice() == {event_id for event_id, _ in load.lost()}
