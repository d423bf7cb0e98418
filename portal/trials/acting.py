"""What the sandbox does in a trial besides paying: the part that a merchant could hardly bring about alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from checkout.states import Status
from config.lib import clock
from payments.cause import Cause
from portal.trials.cases import Case
from portal.trials.evidence import Seen
from webhooks import outbox, resending, testing
from webhooks.models import Delivery, EventType


@contextmanager
def first_attempts(case: Case) -> Iterator[None]:
    """Take the first attempts of the events that are written in the block, if the case is one of failed deliveries."""
    if not case.takes_first:
        yield
        return
    with outbox.first_attempts_taken():
        yield


def act(seen: Seen) -> bool:
    """Do the sandbox's part if it is time for it, once; return whether anything was done."""
    return _ACTS[seen.trial.case](seen)


def _send_again(seen: Seen) -> bool:
    """Send checkout.authorized again once it was answered and the order captured."""
    sent = seen.delivery_of(EventType.AUTHORIZED)
    if seen.trial.acted_at or seen.checkout.status != Status.CAPTURED or sent is None:
        return False
    if sent.status == Delivery.Status.PENDING:
        return False
    at, cause = clock.now(), Cause(f"user:{seen.trial.user_id}")
    with suppress(resending.UnderWay, resending.DeliveryNotFound):
        resending.resend(
            seen.trial.merchant, sent.pk, cause=cause, although_over=True, although_delivered=True
        )
        seen.trial.acted_at = at
    return seen.trial.acted_at is not None


def _refuse_first(seen: Seen) -> bool:
    """Have the first attempt end as if it had been answered 500."""
    sent = seen.delivery_of(EventType.AUTHORIZED)
    if seen.trial.acted_at or sent is None:
        return False
    seen.trial.acted_at = clock.now()
    testing.refuse_first(sent.pk)
    return True


_ACTS: dict[str, Callable[[Seen], bool]] = {"twice": _send_again, "retry": _refuse_first}
