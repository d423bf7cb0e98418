"""Checks invariants that hold after every step, within our records and between our records and the provider's."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from django.db import connection
from django.db.models import F, Sum

from checkout.models import Change, Checkout, PaymentRequest, Refund
from checkout.proof import ledger_proof
from config.lib import clock
from payments.models import Discrepancy, Operation, Payment, Posting
from tests.checkout.lifecycle import reference
from tests.checkout.lifecycle.reference import HOLD, Facts
from tests.checkout.lifecycle.scripted import ScriptedProvider
from webhooks.models import Event

NEVER = ("captured_after_the_end", "void_refused", "in_doubt_for_a_day")
HELD = "checkout.authorized"
ENDS = {"captured", "voided", "expired"}
AT_REST = {"captured", "voided", "expired", "refunded"}
A_MOMENT = 1.0  # maximum duration of an action, in seconds
# This tolerance is needed because a row's created_at comes from Python's clock, and its deadline from the database's
# clock.
TWO_CLOCKS = timedelta(seconds=A_MOMENT)


def see(checkout_uuid: UUID, state: str) -> Facts:
    """Return the facts from which the reference model computes the expected result of an action."""
    checkout, now = Checkout.objects.get(pk=checkout_uuid), clock.now()
    found = Operation.objects.filter(
        payment__subject=checkout_uuid,
        payment__status__in=["authorizing", "authorized", "captured"],
        payment__abandoned_at=None,
        state__in=Operation.OPEN,
        share_uuid=None,
    )
    operation = found.order_by("pk").first()
    return Facts(
        state=state,
        age=(now - (checkout.authorized_at or checkout.created_at)).total_seconds(),
        payable_for=(checkout.payable_until - checkout.created_at).total_seconds(),
        open_kind=operation.kind if operation else "",
        open_age=(now - operation.created_at).total_seconds() if operation else 0.0,
        is_asked=operation is not None and operation.state == "needs_action",
    )


def later(facts: Facts) -> Facts:
    """Return the facts as they will be a moment later. Near a deadline, the result for either moment is correct."""
    return replace(facts, age=facts.age + A_MOMENT, open_age=facts.open_age + A_MOMENT)


def due(facts: Facts, verb: str, *, is_confirmed: bool = True) -> tuple[bool, list[tuple[str, str]]]:
    """Return whether the service must refuse the action, and which status changes the action must cause."""
    found, is_let_in = reference.answer(facts, verb)
    path = [facts.state, found]
    if is_let_in and is_confirmed:
        path.append(reference.MOVES.get((found, verb), found))
    return not is_let_in, [step for step in pairwise(path) if step[0] != step[1]]


def check(states: Mapping[UUID, str], bank: ScriptedProvider) -> None:
    """Assert that these checkouts satisfy every invariant."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
    assert ledger_proof.find_breaches() == []
    assert not Discrepancy.objects.filter(kind__in=NEVER).exists()
    histories = _grouped(Change.objects.order_by("pk").values_list("checkout_id", "to"))
    outbox = Event.objects.values_list("checkout_uuid", "type", "superseded_at")
    events = _grouped((uuid, kind) for uuid, kind, _ in outbox)
    valid = {uuid for uuid, kind, superseded_at in outbox if kind == HELD and superseded_at is None}
    now, refunded = clock.now(), set(Refund.objects.values_list("checkout_id", flat=True))
    for checkout in Checkout.objects.filter(pk__in=states):
        history = histories[checkout.pk]
        assert checkout.status == states[checkout.pk] == history[-1]
        assert len(ENDS & set(history)) <= 1, history
        assert checkout.pk not in refunded or "captured" in history
        assert Counter(events[checkout.pk]) == _events(history), history
        assert (checkout.pk in valid) == (checkout.status == "authorized"), "what is told is true"
        _check_times(checkout, now)
    _check_captures()
    _check_money(states, bank)


def _grouped(rows: Iterable[tuple[UUID | None, str]]) -> dict[UUID | None, list[str]]:
    found: dict[UUID | None, list[str]] = defaultdict(list)
    for key, value in rows:
        found[key].append(value)
    return found


def _events(history: list[str]) -> Counter[str]:
    """Return the events that a checkout must have emitted: if it was held, one for the hold and one for its release."""
    told = Counter(f"checkout.{state}" for state in history if state in ("authorized", "voided"))
    return told if "authorized" in history else Counter()


def _check_times(checkout: Checkout, now: datetime) -> None:
    if checkout.authorized_at and checkout.capture_before:
        assert checkout.capture_before - checkout.authorized_at == timedelta(seconds=HOLD)
    if checkout.void_reason == "auth_expired":
        assert (
            checkout.voided_at and checkout.voided_at == checkout.capture_before and checkout.voided_at <= now
        )
    if checkout.status == "expired":
        assert checkout.expired_at == checkout.payable_until <= now


def _check_captures() -> None:
    """Assert that no capture began after the deadline."""
    captures = Operation.objects.filter(kind="capture", state="succeeded")
    late = captures.filter(created_at__gte=F("payment__checkout__capture_before") + TWO_CLOCKS)
    assert not late.exists()


def _check_money(states: Mapping[UUID, str], bank: ScriptedProvider) -> None:
    """Assert that the ledger and the provider agree, and that no money was taken for unpaid checkouts.

    The two can differ while a capture or a refund is open, and while a held checkout has an open fence. A fence is a
    void that is sent if a capture seems never to have arrived. The fence proves whether the capture has arrived.
    """
    taken: Counter[UUID] = Counter()
    for payment, checkout in Payment.objects.values_list("pk", "checkout_uuid"):
        if payment in bank.charges:
            taken[checkout] += bank.charges[payment].taken
    provider = Posting.objects.filter(account="provider").values_list("checkout_uuid")
    ledger = dict(provider.annotate(balance=Sum("amount")))
    moving = Operation.objects.filter(ended_at=None, kind__in=["capture", "refund"])
    under_way = set(moving.values_list("payment__checkout_uuid", flat=True))
    lost = Operation.objects.filter(kind="capture", reason="never_arrived").values("payment")
    fences = Operation.objects.filter(ended_at=None, kind="void", payment__in=lost)
    fenced = set(fences.values_list("payment__checkout_uuid", flat=True))
    for checkout, state in states.items():
        is_open = checkout in under_way or (state == "authorized" and checkout in fenced)
        assert is_open or ledger.get(checkout, 0) == taken[checkout], state
        assert state not in ("voided", "expired", "created") or not taken[checkout], state


def is_at_rest() -> bool:
    """Return whether no operation is open and every checkout and share has ended."""
    waiting = Checkout.objects.exclude(status__in=AT_REST)
    owed = PaymentRequest.objects.filter(status__in=["pledged", "paying", "paid"])
    return not (Operation.objects.filter(ended_at=None).exists() or waiting.exists() or owed.exists())


def check_rest(states: Mapping[UUID, str], bank: ScriptedProvider) -> None:
    """Assert that every checkout has ended, and that the provider has no open hold or challenge."""
    assert is_at_rest(), (states, list(Operation.objects.filter(ended_at=None)))
    forgotten = [charge for charge in bank.charges.values() if charge.state in ("held", "challenged")]
    assert forgotten == []
    bears = _bears(states)
    for payment, charge in bank.charges.items():
        assert charge.state == ("captured" if payment in bears else charge.state)
        assert charge.taken == bears.get(payment, 0)


def _bears(states: Mapping[UUID, str]) -> dict[UUID | None, int]:
    """Return the amount that must be charged to each card at the end.

    A mate's card is charged for the share, and the lead's card for the rest. No card is charged for a refunded
    amount.
    """
    bears: dict[UUID | None, int] = {}
    for checkout in Checkout.objects.filter(pk__in=states, status__in=["captured", "refunded"]):
        is_kept = checkout.status == "captured"
        shares = dict(checkout.payment_requests.exclude(payment=None).values_list("payment_id", "amount"))
        bears |= {payment: amount if is_kept else 0 for payment, amount in shares.items()}
        bears[checkout.payment_id] = checkout.amount - sum(shares.values()) if is_kept else 0
    return bears
