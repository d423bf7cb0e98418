"""The service in separate processes, with a simulated Stripe API that is the provider and causes the faults."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from config.local import engines, environment
from tests import template
from tests.chaos.faults import Fault
from tests.chaos.world import FREE_OF_LIMITS, Charge, World
from tests.journeys import service
from tests.journeys.service import Service
from tests.payments.providers.conformance.stripe import PATHS as EVERY
from tests.payments.stripe_peer import remote
from tests.payments.stripe_peer.remote import Remote

SECONDS_BETWEEN_MESSAGES = 0.3
# Look-ups have fewer paths than in the conformance tests, so that no fault affects the lists that tests
# read.
PATHS = EVERY | {"look_up": ("GET", "/v1/payment_intents/[^/]+|/v1/refunds.*")}
HANGS, SLOW = 12.0, 9.0  # seconds; both are longer than any call's timeout
STATES = {"requires_capture": "held", "requires_action": "challenged", "succeeded": "captured"}
# For each verb, a plot (see stories.py) that always calls it, so that the verb's faults always occur.
PLOTS = {
    "register": "captured",
    "authorize": "captured",
    "capture": "captured twice",
    "void": "cancelled",
    "refund": "refunded",
    "look_up": "raced",
}
MODES = (
    ("hang", "before"),
    ("hang", "after"),
    ("reset", "before"),
    ("reset", "after"),
    ("error", "before"),
    ("error", "after"),
    ("error", "stored"),
    ("error", "later"),
    ("repeat", "after"),
    ("slow", "after"),
)


class StripeWorld(World):
    """A deployment with two workers and a supervisor. Its provider is a simulation of Stripe's API."""

    def __init__(self, folder: Path, own: engines.Engines, variables: dict[str, str], peer: Remote) -> None:
        super().__init__(folder, own, variables)
        self.peer = peer

    def charges(self, merchant_uuid: str) -> list[Charge]:
        """Return Stripe's records of a merchant's payments. Stripe does not capture an intent more than once.

        If the peer is busy and drops the connection, the library retries the request.
        """
        listed = self.peer.client(repeats=3).v1.payment_intents.list(
            {"limit": 100, "expand": ["data.latest_charge"]}
        )
        found = []
        for intent in listed.auto_paging_iter():
            if intent.metadata["merchant"] == merchant_uuid:
                back = intent.latest_charge.amount_refunded if intent.status == "succeeded" else 0  # type: ignore[union-attr]
                state = STATES.get(intent.status, intent.status)
                found.append(Charge(intent.metadata["payment"], state, intent.amount_received - back, 1))
        return found

    def broken_keys(self) -> list[str]:
        """Return the idempotency keys under which Stripe has stored a server error."""
        return list(self.peer.switch("broken_keys"))

    def met(self) -> set[str]:
        """Return the names of the faults that have affected a call."""
        verbs = {path: verb for verb, (_, path) in PATHS.items()}
        return {f"{verbs[row['path']]}: {row['mode']} {row['when']}" for row in self.peer.switch("met")}


def _strike(verb: str, mode: str, when: str) -> Callable[[World, Random], None]:
    method, path = PATHS[verb]

    def strike(world: World, chance: Random) -> None:
        assert isinstance(world, StripeWorld)
        seconds = HANGS if mode == "hang" else SLOW
        times = chance.randint(1, 3)
        world.peer.switch(
            "fault", method=method, path=path, mode=mode, when=when, times=times, seconds=seconds
        )

    return strike


FAULTS = {
    f"{verb}: {mode} {when}": Fault(_strike(verb, mode, when), plot)
    for verb, plot in PLOTS.items()
    for mode, when in MODES
    if verb != "look_up" or when == "before" or mode == "slow"  # a look-up has no idempotency key
}


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[StripeWorld, Service]]:
    """For the duration of the block, run the world, and the helper process that runs commands in it."""
    template.copy_to(folder)
    port, shop_port = service.free_ports()
    points = folder / "points"
    points.mkdir()
    given = service.bare_environment(
        PORT=port, SHOP_PORT=shop_port, FAIL_POINTS=str(points), **FREE_OF_LIMITS
    )
    variables = environment.variables_of_run(given, folder)
    with remote.running() as peer, engines.running(folder, durable=False) as own:
        hears = {"url": f"{variables['BASE_URL']}/provider/notifications", "enabled_events": ["*"]}
        endpoint = peer.client().v1.webhook_endpoints.create(hears)  # type: ignore[arg-type]
        variables |= {
            "DATABASE_URL": own.database_url,
            "REDIS_URL": own.redis_url,
            "DJANGO_SETTINGS_MODULE": "tests.chaos.stripe.settings",
            "STRIPE_API": peer.address,
            "STRIPE_WEBHOOK_SECRET": str(endpoint.secret),
        }
        world = StripeWorld(folder, own, variables, peer)
        world.fill()
        is_over = threading.Event()
        messenger = threading.Thread(target=_deliver, args=(peer, is_over), daemon=True)
        try:
            world.make_whole()
            messenger.start()
            with service.clerk(variables) as helper:
                yield world, Service(variables["BASE_URL"], "", helper)
        finally:
            is_over.set()
            world.end()


def _deliver(peer: Remote, is_over: threading.Event) -> None:
    """Until the run is over, make the peer send its webhook messages at regular intervals."""
    while not is_over.wait(SECONDS_BETWEEN_MESSAGES):
        with contextlib.suppress(OSError):
            peer.switch("deliver")
