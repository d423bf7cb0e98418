"""Checks that histories of calls to the API are linearizable, because reads must be strongly consistent.

A checkout is treated as a register whose value is the checkout's status. If an answer shows a status, then the
checkout had this status at some moment between the start and the end of the call. A history is linearizable if
such a moment can be chosen for each answer. In the order of these moments, the statuses must follow
`ALLOWED_MOVES`. Some moves can be caused only by a call, so this call must have begun before the move. The
search uses the algorithm of Wing and Gong, and remembers the states that it has visited.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import requests

from checkout.states import ALLOWED_MOVES, Status

# For each of these moves, the verb of the call that causes it. All other moves can happen without a call.
CAUSES = {
    (Status.CREATED, Status.AUTHORIZED): "pay",
    (Status.AUTHORIZED, Status.CAPTURED): "capture",
    (Status.CAPTURED, Status.REFUNDING): "refund",
}


class Call(NamedTuple):
    """A call about a checkout: its verb, when it began and ended in seconds, and the status that its answer shows.

    A call without an answer never ends, because the service can still carry it out. Its `seen` is "".
    """

    verb: str
    began: float
    ended: float = math.inf
    seen: str = ""

    def __str__(self) -> str:
        return f"{self.verb} from {self.began:.3f} to {self.ended:.3f} s saw {self.seen}"


def calls_of(
    method: str, path: str, began: float, ended: float, answer: requests.Response | None
) -> Iterator[tuple[str, Call]]:
    """Yield each checkout that a call and its answer are about, together with the call."""
    parts = path.partition("?")[0].split("/")
    if "checkouts" not in parts:  # a request for a token, whose errors have another form
        return
    subject = parts[parts.index("checkouts") + 1] if "checkouts" in parts[:-1] else ""
    verb = "read" if method == "GET" else parts[-1]
    seen = dict(_statuses(answer, subject, verb)) if answer is not None else {}
    for checkout_uuid in {subject, *seen} - {""}:
        has_ended = answer is not None
        yield checkout_uuid, Call(verb, began, ended if has_ended else math.inf, seen.get(checkout_uuid, ""))


def _statuses(answer: requests.Response, subject: str, verb: str) -> Iterator[tuple[str, str]]:
    """Yield the ids and statuses of the checkouts that an answer shows."""
    if verb == "refund" and answer.status_code == 204:
        yield subject, Status.REFUNDING
    content = answer.json() if "json" in answer.headers.get("Content-Type", "") else {}
    details = content.get("error", {}).get("details")
    for refused in details if isinstance(details, list) else ():
        if refused.get("status") in Status.values:
            yield subject, refused["status"]
    data: Any = content.get("data") or {}
    for row in data.get("checkouts", [data]):
        if "merchant_order_id" in row:
            yield row["checkout_uuid"], row["status"]


def find_inconsistencies(calls: Iterable[tuple[str, Call]]) -> list[str]:
    """Return a description of each checkout whose history is not linearizable."""
    histories = defaultdict(list)
    for checkout_uuid, call in calls:
        histories[checkout_uuid].append(call)
    judged = ((checkout_uuid, judge(history)) for checkout_uuid, history in histories.items())
    return [f"{checkout_uuid}: {problem}" for checkout_uuid, problem in judged if problem]


def judge(history: Sequence[Call]) -> str:
    """Return "" if the history of one checkout is linearizable, else a description of where the search ends."""
    answers = sorted((call for call in history if call.seen), key=lambda call: call.began)
    first = {
        verb: min((call.began for call in history if call.verb == verb), default=math.inf)
        for verb in CAUSES.values()
    }
    everything = (1 << len(answers)) - 1
    stack: list[tuple[int, str]] = [(0, Status.CREATED)]
    visited, furthest = set(stack), stack[0]
    while stack:
        ordered, status = state = stack.pop()
        if ordered == everything:
            return ""
        furthest = max(furthest, state, key=lambda each: each[0].bit_count())
        for index in _next(answers, ordered):
            call = answers[index]
            after = (ordered | 1 << index, call.seen)
            if after not in visited and call.seen in _reachable(status, first, call.ended):
                visited.add(after)
                stack.append(after)
    return _explain(answers, *furthest)


def _next(answers: Sequence[Call], ordered: int) -> list[int]:
    """Return the answers that can come next: those whose call began before any other remaining call ended."""
    left = [index for index in range(len(answers)) if not ordered >> index & 1]
    earliest_end = min(answers[index].ended for index in left)
    return [index for index in left if answers[index].began <= earliest_end]


def _reachable(status: str, first: dict[str, float], until: float) -> set[str]:
    """Return the statuses that a checkout can have reached by a time.

    `first` maps each verb to the time at which the first call of this verb began.
    """
    reached, queue = {str(status)}, [str(status)]
    while queue:
        origin = queue.pop()
        for move in ALLOWED_MOVES:
            is_possible = move not in CAUSES or first[CAUSES[move]] <= until
            if move[0] == origin and move[1] not in reached and is_possible:
                reached.add(str(move[1]))
                queue.append(str(move[1]))
    return reached


def _explain(answers: Sequence[Call], ordered: int, status: str) -> str:
    following = "; ".join(str(answers[index]) for index in _next(answers, ordered))
    return f"not linearizable: {ordered.bit_count()} answers have an order that ends {status}, but then {following}"
