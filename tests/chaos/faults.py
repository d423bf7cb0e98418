"""The table of faults. Each entry says what breaks, for how long, and in which plot (see stories.py) it occurs."""

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from tests.chaos.world import World

REACHED_WITHIN = 60.0
VERBS = ("authorize", "capture", "void", "refund")


class Fault(NamedTuple):
    """A fault that a test causes.

    `strike` causes the fault. If the system cannot repair the damage automatically, `strike` also repairs it
    before it returns. `plot` names a plot in stories.py in which the fault always occurs. Faults with
    `is_apart` do not run at the same time as the other faults.
    """

    strike: Callable[[World, Random], None]
    plot: str
    is_apart: bool = False


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
        time.sleep(chance.uniform(10.5, 12))  # longer than any lease
        for part in ("worker", "second worker"):
            world.thaw(part)


def _close_bank(world: World, chance: Random) -> None:
    with world.alone:
        world.keep_dead("bank")
        time.sleep(chance.uniform(0.5, 3))
        world.release_part("bank")


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


def _reach(point: str, effect: str = "kill") -> Callable[[World, Random], None]:
    """Return a function that arms a fail point and waits until a process reaches it."""

    def strike(world: World, chance: Random) -> None:
        world.arm(point, effect)
        end = time.monotonic() + REACHED_WITHIN
        while time.monotonic() < end and world.is_armed(point):
            time.sleep(0.02)
        if world.disarm(point):
            raise TimeoutError(f"{point} was not reached")

    return strike


def _bank(mode: str, verbs: Sequence[str] = VERBS) -> Callable[[World, Random], None]:
    """Return a function that makes the bank fail one to three calls of a randomly chosen verb."""
    # After two refused voids, the next retry would come after the end of the run.
    max_times = 1 if mode == "void_refused_once" else 3

    def strike(world: World, chance: Random) -> None:
        world.set_fault(chance.choice(verbs), mode, chance.randint(1, max_times))

    return strike


def _asleep(point: str, mode: str = "") -> Callable[[World, Random], None]:
    """Return a function that makes a process sleep at the fail point, for longer than the process's lease.

    If `mode` is given, the function also causes this fault at the bank, so that a process reaches the point.
    """

    def strike(world: World, chance: Random) -> None:
        if mode:
            world.set_fault(point.partition(".")[2], mode, 1)
        _reach(point, "sleep 11")(world, chance)

    return strike


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

# For each fail point at which a process sleeps longer than its lease: the bank's fault that makes a process
# reach the point ("" if no fault is needed), and a plot that reaches the point.
SLEEPS = {
    "before_call.authorize": ("", "captured"),
    "before_call.capture": ("", "shared"),
    "before_call.void": ("", "cancelled"),
    "before_call.refund": ("", "refunded"),
    "after_call.authorize": ("", "shared"),
    "after_call.capture": ("", "captured"),
    "after_call.void": ("", "lapsed"),
    "after_call.refund": ("", "shared"),
    "after_look_up.authorize": ("done_then_reset", "shared"),
    "after_look_up.capture": ("pending", "captured"),
    "after_look_up.void": ("pending", "cancelled"),
    "after_look_up.refund": ("", "refunded"),
}
# The bank's faults that can occur only in calls of these verbs.
MODES_OF_SOME = {
    "pending": ("capture", "void"),
    "pending_then_failed": ("capture",),
    "already_captured": ("capture",),
    "partial_hold": ("authorize",),
    "void_refused_once": ("void",),
    "replayed_500": VERBS,
    "done_replayed_500": VERBS,
}

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
    **{f"asleep at {point}": Fault(_asleep(point, mode), plot) for point, (mode, plot) in SLEEPS.items()},
    **{f"bank: {mode}": Fault(_bank(mode, verbs), "refunded") for mode, verbs in MODES_OF_SOME.items()},
    **{f"bank: {mode}": Fault(_bank(mode), "refunded") for mode in MODES},
    # A real bank remembers a key for a day, so it cannot forget a key while a process sleeps for a few
    # seconds before its call. Therefore this fault must not run together with the others.
    "bank: forgets_keys": Fault(_bank("forgets_keys", ("capture", "refund")), "refunded", is_apart=True),
}
