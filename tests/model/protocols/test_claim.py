"""The claim of deliveries: the real claims, outcomes and sweeps take the steps of the model.

All runs use one connection, so they do not test the lock on the endpoint.
tests/webhooks/test_statements.py tests this lock.
"""

from collections.abc import Hashable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from uuid_utils.compat import uuid7

from config.lib import clock
from config.lib.database import queries
from tests.model.protocols import claim
from tests.model.protocols.claim import Claim, State
from tests.model.protocols.replaying.moves import Move
from tests.model.protocols.replaying.replay import World, replay
from tests.webhooks.story import emit, subscribe
from webhooks import delivery, outbox, retries, statements, transport
from webhooks.models import Attempt, Delivery, Endpoint, Event, EventType, Subscription

# In the model, the endpoint allows one request, and a delivery has two attempts. Here, other requests use up
# the rest of the endpoint's limit, and the earlier attempts have been made already.
OTHERS = delivery.PER_HUNG_URGENT - claim.CAP
EARLIER = retries.SCHEDULES[EventType.AUTHORIZED].attempts - claim.SCHEDULE.attempts
SLOTS = 10
WINDOW = timedelta(seconds=120)


def set_due(ids: list[Any], *, is_due: bool = True) -> None:
    at = clock.now() + timedelta(seconds=-1 if is_due else 3600)
    Delivery.objects.filter(pk__in=ids, status="pending").update(next_attempt_at=at)


class Claiming(World[State]):
    """An endpoint with two deliveries that are due. `leases` maps a delivery and an attempt to the lease token."""

    outside = frozenset({"lock", "leave", "answer", "die", "sleep", "wake"})

    def __init__(self) -> None:
        self.subscription: Subscription = subscribe()
        for _ in range(OTHERS):
            emit(self.subscription, EventType.AUTHORIZED, valid_for=120)
        assert len(delivery.claim(slots=SLOTS, general_slots=0)) == OTHERS
        Delivery.objects.update(lease_until=clock.now() + timedelta(days=1))
        self.checkout = uuid7()
        self.ids = [self._emit() for _ in claim.ROWS]
        Delivery.objects.filter(pk__in=self.ids).update(attempt_count=EARLIER)
        self.leases: dict[tuple[str, str], str] = {}
        self.lost = ""
        Endpoint.objects.update_or_create(subscription=self.subscription, defaults={"hung_in_a_row": 9})

    def _emit(self) -> Any:
        """Emit an event. Both deliveries have events of the same type. Only the first event is about `checkout`."""
        is_first = not Event.objects.filter(checkout_uuid=self.checkout).exists()
        now = clock.now()
        event = outbox.emit(
            self.subscription.merchant,
            EventType.AUTHORIZED,
            {},
            at=now,
            valid_until=now + WINDOW,
            checkout_uuid=self.checkout if is_first else uuid7(),
        )
        return event.deliveries.get().pk

    def kind(self, move: Move[State], before: State) -> Hashable:
        """Return the kind of a step: the delivery before and after it, and the attempt that it records, if any."""
        changed = tuple(pair for pair in zip(before.rows, move.after.rows, strict=True) if pair[0] != pair[1])
        act, *rest = move.act
        if act == "record":
            row, number, answer = before.rows[int(rest[1])], int(rest[2]), rest[3]
            return changed, before.event, row, row.attempts - number, answer
        if act == "close" and before.lost is not None:
            row = before.rows[before.lost[0]]
            return changed, before.event, row, row.attempts - before.lost[1]
        return changed, before.event

    def take(self, move: Move[State], before: State) -> None:
        self._set_clocks(before)
        act, *rest = move.act
        match act:
            case "lease":
                self._lease(self.ids[int(rest[1])], rest[1], str(move.after.rows[int(rest[1])].attempts))
            case "record":
                self._record((rest[1], rest[2]), int(rest[3]), "HTTP status")
            case "find":
                self.lost = self._find_lost(move.after)
            case "close":
                self._close(before)
            case "obsolete":
                set_due(self.ids)
                assert delivery.end_obsolete_deliveries() == 1
            case "tick":
                leased = Delivery.objects.filter(pk__in=self.ids, lease_token__isnull=False)
                leased.update(lease_until=F("lease_until") - timedelta(seconds=claim.TICK))
            case "late":
                ago = clock.now() - timedelta(seconds=1)
                Event.objects.filter(checkout_uuid=self.checkout).update(valid_until=ago)
                Delivery.objects.filter(pk=self.ids[0]).update(valid_until=ago)
            case "supersede":
                outbox.supersede_all({self.checkout: clock.now()})
            case _:
                raise AssertionError(act)

    def _set_clocks(self, before: State) -> None:
        """Set each lease and window to the time that is left in the model, because the test itself takes time too."""
        now = clock.now()
        for pk, row in zip(self.ids, before.rows, strict=True):
            left = timedelta(seconds=claim.TICK * row.left) if row.left else timedelta(seconds=-1)
            Delivery.objects.filter(pk=pk, lease_token__isnull=False).update(lease_until=now + left)
        current = Event.objects.filter(deliveries__in=self.ids)
        if before.event == "late":
            current = current.exclude(checkout_uuid=self.checkout)
        Delivery.objects.filter(event__in=current, status="pending").update(valid_until=now + WINDOW)
        Event.objects.filter(pk__in=list(current.values_list("pk", flat=True))).update(
            valid_until=now + WINDOW
        )

    def _lease(self, pk: Any, row: str, number: str) -> None:
        set_due(self.ids, is_due=False)
        set_due([pk])
        (claimed,) = self._claim()
        assert claimed.delivery_id == str(pk)
        self.leases = self.leases | {(row, number): claimed.lease_token}

    def _claim(self) -> delivery.Claims:
        # An endpoint that has answered no longer counts as hanging. Let it count as hanging again, so that its
        # limit stays the same.
        Endpoint.objects.update(hung_in_a_row=9)
        return delivery.claim(slots=SLOTS, general_slots=0)

    def _record(self, lease: tuple[str, str], status: int | None, error: str) -> None:
        pk, token = str(self.ids[int(lease[0])]), self.leases[lease]
        delivery.record_results([delivery.Result(pk, token, status, error, 5)])

    def _close(self, before: State) -> None:
        assert before.lost is not None
        index, number = before.lost
        if before.rows[index].left == 0 and before.rows[index].attempts == number:
            assert delivery.close_lost_attempts() == 1
        else:
            pk = str(self.ids[index])
            delivery.record_results([delivery.Result(pk, self.lost, None, delivery.WORKER_LOST, None)])

    def _find_lost(self, after: State) -> str:
        """Return the lease token that the sweep finds for the delivery that the model has found."""
        assert after.lost is not None
        found = dict(queries.rows(statements.FIND_LOST_LEASES, {"rows": 10}))
        return str(found[self.ids[after.lost[0]]])

    def seen(self, expected: State) -> Any:
        now = clock.now()
        rows = [self._row(Delivery.objects.get(pk=pk), now) for pk in self.ids]
        return rows, self._claimable()

    def _row(self, row: Delivery, now: Any) -> tuple[Any, ...]:
        left = (
            None if row.lease_until is None else round((row.lease_until - now).total_seconds() / claim.TICK)
        )
        is_marked = row.superseded_at is not None and row.status == "pending"
        attempts = Attempt.objects.filter(delivery=row.pk)
        opened, closed = attempts.filter(ended_at=None).count(), attempts.exclude(ended_at=None).count()
        return row.status, row.attempt_count - EARLIER, left, is_marked, opened, closed

    def _claimable(self) -> int:
        """Return how many deliveries a claim would take now if both were due. The claim is rolled back."""
        savepoint = transaction.savepoint()
        set_due(self.ids)
        count = len(self._claim())
        transaction.savepoint_rollback(savepoint)
        return count

    def shown(self, state: State) -> Any:
        rows = [
            (*row[:3], row.is_marked, int(row.left is not None), row.attempts - int(row.left is not None))
            for row in state.rows
        ]
        busy = sum(row.left is not None for row in state.rows)
        return rows, min(claim.CAP - busy, len(Claim()._due(state)))


@pytest.mark.django_db
def test_steps_of_each_kind_are_steps_of_the_code() -> None:
    taken = replay(Claim(), Claiming())
    assert taken == {"lease", "record", "find", "close", "obsolete", "tick", "late", "supersede"}


def test_the_model_has_the_limits_of_the_code() -> None:
    assert claim.LEASE * claim.TICK == delivery.LEASE_SECONDS
    assert claim.ATTEMPT * claim.TICK == transport.DEADLINE_SECONDS
    schedule = retries.SCHEDULES[EventType.AUTHORIZED]
    answers = [*claim.ANSWERS, None]
    assert [schedule.retries(answer) for answer in answers] == [
        claim.SCHEDULE.retries(answer) for answer in answers
    ]
