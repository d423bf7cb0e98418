"""The check of histories finds every inconsistency. Under faults, the service's histories have no inconsistency."""

import itertools
import math
import os
from random import Random
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos import histories, runs
from tests.chaos.backend import Backend
from tests.chaos.faults import FAULTS
from tests.chaos.histories import Call
from tests.chaos.runs import Chaos, Run
from tests.chaos.stories import Story
from tests.chaos.world import World
from tests.journeys import receiver as receivers
from tests.journeys.merchant import Json
from tests.journeys.service import Service

SEED = int(os.environ.get("FIRST_SEED", "1"))
PAID = [Call("pay", 0, 1, "authorized")]
CAPTURED = [*PAID, Call("capture", 2, 4, "captured")]


@pytest.mark.parametrize(
    "further",
    [
        [Call("read", 5, 6, "captured")],
        [Call("read", 3, 5, "authorized"), Call("read", 3, 5, "captured")],
        [Call("read", 2.5, 3, "captured"), Call("read", 3.5, 3.8, "captured")],
        [Call("refund", 5), Call("read", 6, 7, "refunded")],
        [Call("refund", 5, 6, "refunding"), Call("read", 7, 8, "captured"), Call("read", 9, 10, "captured")],
    ],
    ids=["later", "beside", "before the answer", "refund without an answer", "failed refund"],
)
def test_a_consistent_history_is_accepted(further: list[Call]) -> None:
    assert histories.judge([*CAPTURED, *further]) == ""


@pytest.mark.parametrize(
    ("history", "what"),
    [
        ([*CAPTURED, Call("read", 5, 6, "authorized")], "read from 5.000 to 6.000 s saw authorized"),
        ([*PAID, Call("read", 2, 3, "captured")], "saw captured"),
        ([*PAID, Call("read", 2, 3, "captured"), Call("capture", 4, 5, "captured")], "saw captured"),
        ([*PAID, Call("read", 2, 3, "voided"), Call("capture", 1, 4, "captured")], "saw captured"),
        (
            [
                *CAPTURED,
                Call("refund", 1, 9),
                Call("read", 5, 6, "refunding"),
                Call("read", 7, 8, "authorized"),
            ],
            "saw authorized",
        ),
    ],
    ids=["stale", "without a call", "before its call", "after the end", "stale during a refund"],
)
def test_an_inconsistent_history_is_explained(history: list[Call], what: str) -> None:
    problem = histories.judge(history)
    assert problem.startswith("not linearizable") and what in problem


def judge_slowly(history: list[Call]) -> bool:
    """Try all orders of the answers, and return whether one of them explains the history."""
    answers = [call for call in history if call.seen]
    first = {
        verb: min((call.began for call in history if call.verb == verb), default=math.inf)
        for verb in histories.CAUSES.values()
    }

    def explains(order: tuple[Call, ...]) -> bool:
        if any(later.ended < earlier.began for earlier, later in itertools.combinations(order, 2)):
            return False
        statuses = ["created", *(call.seen for call in order)]
        return all(
            call.seen in histories._reachable(status, first, call.ended)
            for status, call in zip(statuses, order, strict=False)
        )

    return any(explains(order) for order in itertools.permutations(answers))


CALLS = st.builds(
    lambda verb, began, lasts, seen: Call(verb, began, began + lasts, seen),
    st.sampled_from(["read", "read", "pay", "capture", "refund"]),
    st.integers(0, 6),
    st.integers(0, 4),
    st.sampled_from(["created", "authorized", "captured", "voided", "refunding", "refunded"]),
)


@given(history=st.lists(CALLS, max_size=6))
def test_the_judge_agrees_with_the_search_of_all_orders(history: list[Call]) -> None:
    assert (histories.judge(history) == "") == judge_slowly(history)


class Forgetful(Backend):
    """A backend behind a faulty cache: every third read of an address gets the answer to the first read."""

    def __init__(self, *given: Any) -> None:
        self._kept: dict[str, tuple[int, requests.Response]] = {}
        super().__init__(*given)

    def _once(
        self, method: str, url: str, body: Json | None, headers: dict[str, str]
    ) -> requests.Response | None:
        if method != "GET":
            return super()._once(method, url, body, headers)
        times, kept = self._kept.get(url, (0, None))
        answer = kept if kept is not None and times % 3 == 2 else super()._once(method, url, body, headers)
        if kept is not None or answer is not None:
            self._kept[url] = times + 1, kept or answer  # type: ignore[assignment]  # one of them is not None
        return answer


@pytest.mark.journey
@pytest.mark.long
class TestTheService:
    def tell(self, backend: Backend) -> None:
        story = Story(backend, Random(SEED))
        with runs.reading([story]):
            story.tell("refunded")
        backend.read(story.checkout_uuid)

    def test_reads_are_consistent(self, whole: tuple[World, Service]) -> None:
        backend = Backend(whole[1].base_url, whole[1].new_merchant().credentials)
        self.tell(backend)
        assert len([call for _, call in backend.calls if call.seen]) > 10
        assert histories.find_inconsistencies(backend.calls) == []

    def test_a_stale_read_is_found(self, whole: tuple[World, Service]) -> None:
        backend = Forgetful(whole[1].base_url, whole[1].new_merchant().credentials)
        self.tell(backend)
        (found,) = histories.find_inconsistencies(backend.calls)
        print(f"\nA deliberately stale read: {found}")

    def test_reads_are_consistent_under_each_fault(self, whole: tuple[World, Service]) -> None:
        with receivers.listening() as receiver:
            chaos = Chaos(FAULTS, *whole, receiver)
            results = chaos.run_all([Run(fault, SEED) for fault in FAULTS])
        print("\n" + runs.table(results))
        print(
            f"{sum(result.answers for result in results):,} answers of {len(results)} runs are linearizable."
        )
        assert [result for result in results if result.violations] == []
