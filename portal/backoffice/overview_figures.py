"""The figures and lists on the operators' overview.

Fewer than twenty statements read them, and each statement reads only open rows. Rule operator.page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Subquery, Value
from django.http import HttpRequest

from checkout.models import Checkout
from config.lib import clock
from config.lib.database import lag
from payments import money, operation_queue, planning
from payments.discrepancies import definitions
from payments.models import Discrepancy, Merchant, Operation, Switch
from portal.backoffice import ages, cases, frame, queues
from portal.backoffice.queues import LATE, LATE_AFTER, LATE_MEANS, Queue
from portal.models import OutboundEmail
from webhooks.models import Delivery, Endpoint, EventType

MAX_LISTED = 50
STATE_TEXTS = {
    Operation.State.IN_FLIGHT: "No answer yet after {tries}.",
    Operation.State.NEEDS_ACTION: "The payer is being asked by their bank.",
    Operation.State.PENDING: "Accepted after {tries}, but not settled yet.",
    Operation.State.UNKNOWN: "No clear answer after {tries}.",
}
MAXIMUM = 1000  # the maximum number of rows that are counted


@dataclass(frozen=True)
class UnresolvedOperation:
    """An operation whose outcome is still unknown. Its start and its attempts count from its first key."""

    operation: Operation
    since: datetime
    attempts: int
    order_id: str
    amount: str
    age: str
    verdict: str
    is_in_doubt: bool
    read_at: datetime
    hold_ends: datetime | None = None  # None if the operation is not a capture

    @property
    def summary(self) -> str:
        """Return sentences with the time of sending, the number of attempts, and the time of the next attempt."""
        tries = f"{self.attempts} {'try' if self.attempts == 1 else 'tries'}"
        sentences = [
            f"Sent {_time_words(self.since)}.",
            STATE_TEXTS[Operation.State(self.operation.state)].format(tries=tries),
            self._next_try_sentence,
            self._hold_end_sentences,
        ]
        return " ".join(filter(None, sentences))

    @property
    def _hold_end_sentences(self) -> str:
        """Return sentences about the end of the hold that this operation captures (rule doubt.capture_after)."""
        if self.hold_ends is None:
            return ""
        ends = f"The hold ends\N{NO-BREAK SPACE}{_time_words(self.hold_ends)}."
        return f"{ends} From then on the capture is looked up, never sent again."

    @property
    def _next_try_sentence(self) -> str:
        at = self.operation.next_attempt_at
        if at is None:
            return ""
        return f"The next try is {_time_words(at)}." if at > self.read_at else "The next try is due."


@dataclass(frozen=True)
class Board:
    """The overview's data at the time `at`.

    Each list contains only its oldest rows. `parked` is at most `maximum`.
    """

    at: datetime
    stops: Sequence[Switch]
    queues: Sequence[Queue]
    unresolved: Sequence[UnresolvedOperation]
    first_cases: Sequence[cases.Case]  # the cases that are shown in full
    cases: Sequence[cases.Case]
    failing: Sequence[tuple[Endpoint, str]]
    parked: int
    dropped_mails: int  # mails that the service gave up in the last day
    replica: lag.ReplicaLag | None
    maximum: int = MAXIMUM
    late_after: str = LATE_AFTER
    late_means: str = LATE_MEANS

    @property
    def stop_of_all(self) -> Switch | None:
        """Return the stop that stops all merchants, or None if not all are stopped."""
        return next((switch for switch in self.stops if switch.merchant_id is None), None)

    @property
    def oldest(self) -> Queue | None:
        """Return the queue whose oldest row has waited longest. Late queues come before all others."""
        waiting = [queue for queue in self.queues if queue.since]
        return min(waiting, key=lambda queue: (queue.verdict != LATE, queue.since), default=None)

    @property
    def lists(self) -> list[tuple[str, str]]:
        """Return links to the lists of all discrepancies, or no links if all are shown."""
        return cases.list_links(self.cases, self.first_cases)

    @property
    def breaches(self) -> int:
        """Return how many open discrepancies `manage.py prove_ledger` has found."""
        return sum(case.discrepancy.kind_entry.runbook == definitions.BROKEN for case in self.cases)


def read_board(request: HttpRequest | None = None) -> Board:
    """Return the current data for the overview, with the actions that the request's operator may take."""
    now = clock.now()
    unclear, open_cases = waiting_rows(now, request)
    parked, dropped_mails = _count_failures(now)
    return Board(
        at=now,
        stops=list(Switch.objects.filter(is_stopped=True).select_related("merchant")),
        queues=queues.read_queues(now),
        unresolved=unclear,
        cases=open_cases,
        first_cases=cases.cases_in_full(open_cases, request),
        failing=_failing_endpoints(now),
        parked=parked,
        dropped_mails=dropped_mails,
        replica=lag.known_lag(),
    )


def stop_of_all(request: HttpRequest) -> Switch | None:
    """Return the stop of all merchants. Return None if there is none, or if this operator may not see stops."""
    rows = Switch.objects.filter(merchant=None, is_stopped=True)
    return rows.first() if frame.may_see(request, "payments.switch") else None


def waiting_rows(
    now: datetime, request: HttpRequest | None
) -> tuple[list[UnresolvedOperation], list[cases.Case]]:
    """Return the unresolved operations and the open cases, both oldest first. Two statements read them."""
    rows = planning.with_first_sending(Operation.objects.filter(state__in=Operation.OPEN))
    rows = rows.order_by("first_created_at").select_related("payment__merchant")
    order = Checkout.objects.filter(pk=OuterRef("payment__checkout_uuid"))
    ends = Subquery(order.values("capture_before")[:1])
    listed = rows.annotate(order_id=cases.order_id_of("payment__checkout_uuid"), hold_ends=ends)[:MAX_LISTED]
    unclear = [describe_unresolved(row, row.order_id or "", now, row.hold_ends) for row in listed]
    return unclear, cases.open_cases(now, request)


def count_waiting() -> tuple[int, int]:
    """Return the number of unresolved operations and the number of open discrepancies.

    Each number is at most MAX_LISTED. One statement counts both.
    """
    operations = Operation.objects.filter(state__in=Operation.OPEN).order_by()
    discrepancies = Discrepancy.objects.filter(closed_at=None).order_by()
    first, second = (
        rows.values_list(Value(word))[:MAX_LISTED]
        for rows, word in ((operations, "unclear"), (discrepancies, "case"))
    )
    words = [word for (word,) in first.union(second, all=True)]
    return words.count("unclear"), words.count("case")


def describe_unresolved(
    operation: Any, order_id: str, now: datetime, hold_ends: datetime | None
) -> UnresolvedOperation:
    """Return the description of an operation whose outcome is still unknown.

    The operation must have been read with `planning.with_first_sending`.
    """
    since, age = operation.first_created_at, now - operation.first_created_at
    amount = money.display(operation.amount, operation.payment.currency)
    verdict = queues.judge_wait(age, operation_queue.MAX_PAYER_WAIT)
    is_in_doubt = operation_queue.is_in_doubt(operation)  # false while the operation waits for the payer
    ends = hold_ends if operation.kind == Operation.Kind.CAPTURE else None
    tries = operation.all_attempts
    return UnresolvedOperation(
        operation, since, tries, order_id, amount, ages.in_words(age), verdict, is_in_doubt, now, ends
    )


def _time_words(moment: datetime) -> str:
    """Return a time of day with its preposition. No line break is possible between the two."""
    return f"at\N{NO-BREAK SPACE}{moment:%H:%M:%S}"


def _failing_endpoints(now: datetime) -> list[tuple[Endpoint, str]]:
    rows = Endpoint.objects.filter(failing_since__isnull=False, subscription__ended_at=None)
    rows = rows.select_related("subscription__merchant").order_by("failing_since")
    return [(row, ages.in_words(now - row.failing_since)) for row in rows[:MAX_LISTED] if row.failing_since]


def _count_failures(now: datetime) -> tuple[int, int]:
    """Count the deliveries that were parked today and are not closed, and the mails dropped in the last day.

    Test events do not count. The query for deliveries names all merchants, so that it can use an index that
    begins with the merchant. One statement counts both.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    parked = Delivery.objects.filter(status=Delivery.Status.PARKED, closed_at=None, ended_at__gte=midnight)
    parked = parked.exclude(event_type=EventType.TEST).filter(merchant__in=Merchant.objects.all())
    dropped = OutboundEmail.objects.filter(dropped_at__gte=now - timedelta(days=1))
    first, second = (
        rows.order_by().values_list(Value(word))[:MAXIMUM]
        for rows, word in ((parked, "parked"), (dropped, "mail"))
    )
    words = [word for (word,) in first.union(second, all=True)]
    return words.count("parked"), words.count("mail")
