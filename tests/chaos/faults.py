"""The faults, as a table: what breaks, for how long, and a plot that is sure to meet it."""

import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.chaos.world import World

REACHED_WITHIN = 60.0


class Fault(NamedTuple):
    """Something that breaks; `strike` returns when it has broken and, where nobody else mends it, is mended."""

    strike: Callable[[World, Random], None]
    plot: str


def _kill(*parts: str) -> Callable[[World, Random], None]:
    def strike(world: World, chance: Random) -> None:
        for part in parts:
            world.kill(part)

    return strike


def _kill_a_worker(world: World, chance: Random) -> None:
    world.kill(chance.choice(["worker", "second worker"]))


def _freeze_workers(world: World, chance: Random) -> None:
    with world.alone:
        for part in ("worker", "second worker"):
            world.freeze(part)
        time.sleep(chance.uniform(1, 4))
        for part in ("worker", "second worker"):
            world.thaw(part)


def _close_bank(world: World, chance: Random) -> None:
    with world.alone:
        world.hold_down("bank")
        time.sleep(chance.uniform(0.5, 3))
        world.let_up("bank")


def _stop_redis(world: World, chance: Random) -> None:
    with world.alone:
        world.stop_redis()
        time.sleep(chance.uniform(0.5, 3))
        world.start_redis()


def _flush_redis(world: World, chance: Random) -> None:
    with world.alone:
        world.flush_redis()


def _crash_postgres(world: World, chance: Random) -> None:
    with world.alone:
        world.crash_postgres()


def _reach(point: str, act: str = "kill") -> Callable[[World, Random], None]:
    """Arm a fail point and return once a process has reached it."""

    def strike(world: World, chance: Random) -> None:
        world.arm(point, act)
        end = time.monotonic() + REACHED_WITHIN
        while time.monotonic() < end and world.is_armed(point):
            time.sleep(0.02)
        if world.disarm(point):
            raise TimeoutError(f"{point} was not reached")

    return strike


def _bank(mode: str) -> Callable[[World, Random], None]:
    """Let one to three calls of a verb go wrong."""

    def strike(world: World, chance: Random) -> None:
        world.set_fault(chance.choice(VERBS), mode, chance.randint(1, 3))

    return strike


VERBS = ("authorize", "capture", "void", "refund")
POINTS = {
    "before_call.authorize": "captured",
    "after_call.authorize": "captured",
    "before_commit.authorize": "captured",
    "before_call.capture": "captured",
    "after_call.capture": "captured",
    "before_commit.capture": "captured twice",
    "after_commit.capture": "captured",
    "after_call.void": "cancelled",
    "before_commit.void": "lapsed",
    "after_call.refund": "refunded",
    "before_commit.refund": "refunded",
    "event_written.checkout.authorized": "captured",
    "event_committed.checkout.voided": "cancelled",
    "key_claimed": "captured",
    "answer_made": "captured",
    "answer_kept": "captured",
}
MODES = (
    "down",
    "error",
    "hang",
    "done_then_hang",
    "done_then_reset",
    "done_then_error",
    "nonsense",
    "garbage",
    "no_amount",
    "notify_twice",
    "notify_first",
)

FAULTS: dict[str, Fault] = {
    "web killed": Fault(_kill("web"), "captured"),
    "a worker killed": Fault(_kill_a_worker, "cancelled"),
    "both workers killed": Fault(_kill("worker", "second worker"), "refunded"),
    "beat killed": Fault(_kill("beat"), "lapsed"),
    "power cut": Fault(_kill("web", "worker", "second worker", "beat", "bank"), "captured"),
    "workers frozen": Fault(_freeze_workers, "cancelled"),
    "PostgreSQL crashed": Fault(_crash_postgres, "captured"),
    "Redis stopped": Fault(_stop_redis, "cancelled"),
    "Redis flushed": Fault(_flush_redis, "cancelled"),
    "bank killed": Fault(_kill("bank"), "captured"),
    "bank closed": Fault(_close_bank, "captured"),
    **{f"killed at {point}": Fault(_reach(point), plot) for point, plot in POINTS.items()},
    "asleep past its lease": Fault(_reach("after_call.capture", "sleep 11"), "captured"),
    **{f"bank: {mode}": Fault(_bank(mode), "refunded") for mode in MODES},
}
