"""Carries out plots, which are the actions of a merchant and a customer on one checkout.

The tests check that every successful response stays true.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import requests

from tests.chaos.backend import Backend, GaveUp

PLAIN, CHALLENGE, DECLINED = "4242424242424242", "4000002500003155", "4000000000000002"


class Success(NamedTuple):
    """A 2xx response: the verb of the call, and the `captured_at` of the response."""

    verb: str
    captured_at: str | None


class Story:
    """One checkout, and the successful responses about it."""

    def __init__(self, backend: Backend, chance: Random) -> None:
        self.backend, self.chance = backend, chance
        self.successes: list[Success] = []
        self.checkout_uuid = ""

    def tell(self, plot: str) -> None:
        """Create the checkout, and make the calls of a plot from PLOTS."""
        self.checkout_uuid = self.backend.create()
        PLOTS[plot](self)

    def pay(self, card: str = PLAIN, **more: Any) -> None:
        self.backend.pay(self.checkout_uuid, {"card": card} | more)

    def pay_share(self) -> None:
        self.backend.pay_share(self.checkout_uuid)

    def capture(self) -> None:
        self._keep("capture", self.backend.verb(self.checkout_uuid, "capture", {}, key=self._flip()))

    def cancel(self) -> None:
        self._keep("cancel", self.backend.verb(self.checkout_uuid, "cancel", {}, key=self._flip()))

    def refund(self) -> None:
        ref = {"merchant_refund_ref": f"R-{self.checkout_uuid}"}
        self._keep("refund", self.backend.verb(self.checkout_uuid, "refund", ref))
        self._keep("refund", self.backend.verb(self.checkout_uuid, "refund", ref))

    def lapse(self) -> None:
        self._keep("advance", self.backend.advance(self.checkout_uuid, 121))

    def at_once(self, *acts: Callable[[], None]) -> None:
        """Make several calls at the same time."""
        threads = [threading.Thread(target=act) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _keep(self, verb: str, answer: requests.Response) -> None:
        if answer.status_code < 300:
            content = answer.json()["data"] if answer.content else {}
            self.successes.append(Success(verb, content.get("captured_at")))

    def _flip(self) -> bool:
        return self.chance.random() < 0.5


def _captured(story: Story) -> None:
    story.pay()
    story.capture()


def _captured_twice(story: Story) -> None:
    story.pay()
    story.at_once(story.capture, story.capture)


def _refunded(story: Story) -> None:
    _captured(story)
    story.refund()


def _cancelled(story: Story) -> None:
    story.pay()
    story.cancel()


def _raced(story: Story) -> None:
    story.pay()
    story.at_once(story.capture, story.cancel)


def _lapsed(story: Story) -> None:
    story.pay()
    story.lapse()


def _declined(story: Story) -> None:
    story.pay(DECLINED)
    story.cancel()


def _challenged(story: Story) -> None:
    """Pay with a card that needs a challenge, and capture.

    If a fault breaks the call that answers the challenge, the challenge stays open for ten minutes. Until
    then, the helper `pay` returns 409, and the payer gives up.
    """
    with suppress(GaveUp):
        story.pay(CHALLENGE)
        story.capture()


def _shared(story: Story) -> None:
    story.pay(shares=[{"name": "Finn", "amount": 2000}])
    story.capture()
    story.pay_share()
    if story.chance.random() < 0.5:
        story.refund()


PLOTS: dict[str, Callable[[Story], None]] = {
    "captured": _captured,
    "captured twice": _captured_twice,
    "refunded": _refunded,
    "cancelled": _cancelled,
    "raced": _raced,
    "lapsed": _lapsed,
    "declined": _declined,
    "challenged": _challenged,
    "shared": _shared,
}
