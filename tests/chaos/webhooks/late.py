"""Pauses a worker after it has received the responses to its deliveries but before it records them.

When the worker continues, its results come too late, because other workers have leased its deliveries.
"""

import time

from tests.chaos.webhooks.load import Load
from tests.chaos.world import World
from tests.journeys import polling

WITHIN = 20.0
A_WHILE = 0.7  # seconds; long enough for a worker to record a result


def stop_before_it_records(world: World, load: Load, worker: str) -> None:
    """Pause the worker once it has received one response. Then send the responses to its other requests.

    All requests that are open at the endpoints must come from this worker.
    """
    endpoint = load.endpoints[0]
    first = endpoint.posts[0]
    aim = f"webhook_answered.{load.delivery_of(first.event_id)}"
    world.arm(aim, "sleep 2")
    endpoint.hold(lambda post: post.event_id != first.event_id)
    polling.until(lambda: not world.is_armed(aim), within=WITHIN, what="the first answer")
    world.freeze(worker)
    for one in load.endpoints:
        one.hold(lambda post: post.attempt > 1)
    polling.until(lambda: not any(one.at_once for one in load.endpoints), within=WITHIN, what="all answers")


def continue_in_vain(world: World, load: Load, worker: str) -> None:
    """Resume the worker while other workers' attempts are in flight. Check that no late result is stored."""
    ids = [load.delivery_of(post.event_id) for post in load.endpoints[0].posts[:2]]
    before = load.attempts(), load.deliveries()
    for delivery_id in ids:
        world.arm(f"webhook_recorded.{delivery_id}", "sleep 0")
    aim = f"webhook_answered.{ids[1]}"
    world.arm(aim, "sleep 0")
    world.thaw(worker)
    polling.until(lambda: not world.is_armed(aim), within=WITHIN, what="the late worker's record")
    time.sleep(A_WHILE)
    refused = [world.disarm(f"webhook_recorded.{delivery_id}") for delivery_id in ids]
    assert refused == [True, True], "a late result was recorded"
    assert (load.attempts(), load.deliveries()) == before
