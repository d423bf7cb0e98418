"""State machine that runs random events on checkouts, with the real database and a faulty provider."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule

from checkout import (
    authorizations,
    cancellations,
    captures,
    given_up_cards,
    mate_shares,
    operation_recovery,
    refunds,
    states,
    tasks,
)
from checkout.api import detailed_reads
from checkout.group import pledging
from checkout.models import Change, PaymentRequest
from checkout.syncing import notifications
from config.lib import clock
from payments.models import Discrepancy, Inquiry, Merchant, Operation, Payment
from payments.provider import CardUse, Verdict
from tests import factories
from tests.checkout.lifecycle import ageing, observed, reference, unit_rules
from tests.checkout.lifecycle.scripted import CallerDied, Happens, ScriptedProvider
from tests.checkout.lifecycle.tales import Tale
from tests.checkout.lifecycle.unit_rules import BY_ITEM, ByItem, UnitRules
from tests.factories import CAUSE
from tests.refusals import nothing_moves

Moves = list[tuple[UUID, str, str]]
REFUSALS = (
    states.StateConflict,
    states.OperationInProgress,
    refunds.RefundRefConflict,
    mate_shares.ShareNotOpen,
)
UNCLEAR = (captures.OutcomeUnknown, captures.ProviderRefused, CallerDied)
# The seconds that pass in each step after the last event. The longest step is for abandoned payments, which
# take longest to end.
TO_REST = (11, 4, 15, 60, 60, 650, 650, 3700, 90_000, 700, 700)
ALL_ACTS = ["pledge", "authorize", "capture"]
scripts = st.lists(st.sampled_from(Happens), max_size=2)


class NewOrder(NamedTuple):
    """A checkout to create, and the actions to take on it.

    `script` says what happens to the provider calls of the last action.
    """

    minutes: int | None  # minutes until the expiry that the merchant sets
    acts: list[str]
    script: list[Happens]
    is_refunded: bool
    parts: ByItem | list[int]
    taken: Sequence[int]


NEW_ORDERS = st.builds(
    NewOrder,
    minutes=st.none() | st.integers(2, 90),
    acts=st.sampled_from([[], ["pledge"], ["authorize"], ["authorize", "capture"], ALL_ACTS]),
    script=scripts,
    is_refunded=st.booleans(),
    parts=st.sampled_from([[], [9000], [2000, 3000], *BY_ITEM]),
    taken=unit_rules.TAKEN,
)


class Lifecycle(UnitRules):
    """Each rule is an event, which may change checkouts only as the reference model allows.

    No rule has a precondition. A precondition could depend on how long a step takes, and Hypothesis could then not
    repeat a run. A rule that finds no object to act on has no effect.
    """

    checkouts: Bundle[UUID] = Bundle("checkouts")

    def __init__(self, merchant: Merchant, bank: ScriptedProvider) -> None:
        super().__init__()
        self.merchant, self.bank = merchant, bank
        self.lead = factories.CustomerFactory.create()
        self.states: dict[UUID, str] = {}
        self.refs: dict[str, UUID] = {}
        self.moves_seen = 0
        self.savepoint = transaction.savepoint()
        bank.reset()

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:  # only if no step has failed
                self._come_to_rest()
        finally:
            transaction.savepoint_rollback(self.savepoint)
            connection.run_on_commit = []

    @initialize(target=checkouts, new=NEW_ORDERS)
    def create_first(self, new: NewOrder) -> UUID:
        """Create the first checkout before all other steps, which would have no effect without a checkout."""
        return self._create(new)

    @rule(target=checkouts, new=NEW_ORDERS)
    def create(self, new: NewOrder) -> UUID:
        return self._create(new)

    def _create(self, new: NewOrder) -> UUID:
        expiry = clock.now() + timedelta(minutes=new.minutes) if new.minutes else None
        checkout = factories.checkout(self.merchant, merchant_expires_at=expiry, items=unit_rules.ITEMS)
        self.states[checkout.pk] = "created"
        with contextlib.suppress(mate_shares.TooLateToCollect):
            self.split(checkout.pk, new.parts, everyone_first="pledge" in new.acts)
        self.take_units_of(checkout.pk, new.taken, unit_rules.ZOE)
        for act in new.acts:
            faults = new.script if act == new.acts[-1] else []
            {"pledge": self.pledge, "authorize": self.authorize, "capture": self.capture}[act](
                checkout.pk, faults
            )
        if new.is_refunded and self.states[checkout.pk] == "captured":
            self.refund(checkout.pk, f"r-{len(self.refs) + 1}")
        return checkout.pk

    @rule(checkout=checkouts, script=scripts)
    def pledge(self, checkout: UUID, script: list[Happens]) -> None:
        """Let a mate pledge the first open share of an unpaid order."""
        rows = PaymentRequest.objects.filter(checkout=checkout, checkout__status="created", status="open")
        share = rows.order_by("pk").first()
        if share is None:
            return
        self._script(script)
        card, mate = CardUse(f"tok_{uuid4()}"), factories.CustomerFactory.create()
        claim = share.claim_digest
        _is_refused(partial(mate_shares.pay, share.pk, card=card, mate=mate, cause=CAUSE, claim=claim))
        assert {move[1:] for move in self._moves()} <= reference.BY_THEMSELVES

    @rule(which=st.integers(0, 9), is_lead=st.booleans())
    def end_pledge(self, which: int, is_lead: bool) -> None:
        """End a pledge: either the mate withdraws it, or the lead cancels the share."""
        rows = list(PaymentRequest.objects.filter(checkout__in=self.states, status="pledged").order_by("pk"))
        if not rows:
            return
        share = rows[which % len(rows)]
        withdraw = partial(pledging.withdraw, share.pk, mate=share.mate_id or uuid4())
        is_refused = _is_refused(partial(mate_shares.cancel, share.pk) if is_lead else withdraw)
        assert not (is_lead and is_refused)
        assert {move[1:] for move in self._moves()} <= reference.BY_THEMSELVES

    @rule(
        checkout=checkouts,
        parts=st.sampled_from([[], [2000], [2000, 3000], [1000, 1000, 1000], *BY_ITEM]),
    )
    def split_again(self, checkout: UUID, parts: ByItem | list[int]) -> None:
        """Let the lead change the split, so that some pledges end."""
        _is_refused(lambda: self.split(checkout, parts, everyone_first=True))
        assert self._moves() == []

    @rule(checkout=checkouts, script=scripts)
    def authorize(self, checkout: UUID, script: list[Happens]) -> None:
        card = CardUse(f"tok_{uuid4()}")
        self._do(
            "authorize",
            checkout,
            lambda: authorizations.authorize(checkout, card=card, lead=self.lead, cause=CAUSE),
            script,
        )

    @rule(checkout=checkouts, is_confirmed=st.booleans(), comes_back=st.booleans(), script=scripts)
    def answer_challenge(
        self, checkout: UUID, is_confirmed: bool, comes_back: bool, script: list[Happens]
    ) -> None:
        for payment in Payment.objects.filter(checkout_uuid=checkout):
            self.bank.answer_challenge(payment.pk, is_confirmed=is_confirmed)
            if comes_back:
                self._let(partial(operation_recovery.finish_for_payer, payment.subject), script)

    @rule(which=st.integers(0, 9), script=scripts)
    def pay_share(self, which: int, script: list[Happens]) -> None:
        """Let a mate pay a share.

        The payment must be refused unless the share is open, or is being paid with a card that can be given up.
        """
        share = self._opened(which)
        if share is None:
            return
        is_free = self.states[share.checkout_id] in ("created", "captured") and share.status == "open"
        is_late = share.expires_at is None or share.expires_at <= clock.now()
        self._script(script)
        card, mate = CardUse(f"tok_{uuid4()}"), factories.CustomerFactory.create()
        pay = partial(mate_shares.pay, share.pk, claim=share.claim_digest)
        is_refused = _is_refused(partial(pay, card=card, mate=mate, cause=CAUSE))
        assert is_refused != is_free or share.status == "paying" or is_late
        assert {move[1:] for move in self._moves()} <= reference.BY_THEMSELVES

    @rule(which=st.integers(0, 9), is_lead=st.booleans())
    def end_share(self, which: int, is_lead: bool) -> None:
        share = self._opened(which)
        if share is None:
            return
        decline = partial(mate_shares.decline, share.pk, share.claim_digest)
        end = partial(mate_shares.cancel, share.pk) if is_lead else decline
        is_late = share.expires_at is None or share.expires_at <= clock.now()
        assert _is_refused(end) == (share.status != "open") or is_late
        assert self._moves() == []

    def _opened(self, which: int) -> PaymentRequest | None:
        """Return a share that is open or being paid, or None."""
        rows = PaymentRequest.objects.filter(checkout__in=self.states, status__in=["open", "paying"])
        opened = list(rows.order_by("pk"))
        return opened[which % len(opened)] if opened else None

    @rule(checkout=checkouts)
    def use_another_card(self, checkout: UUID) -> None:
        seen = observed.see(checkout, self.states[checkout])
        given_up_cards.allow_another_card(checkout)
        assert self._moves() == []
        is_given_up = seen.open_kind == "authorize" and (seen.is_asked or not reference.is_bound(seen))
        near = reference.is_bound(seen) != reference.is_bound(observed.later(seen))
        assert near or bool(observed.see(checkout, self.states[checkout]).open_kind) == (
            bool(seen.open_kind) and not is_given_up
        )

    @rule(checkout=checkouts, script=scripts)
    def capture(self, checkout: UUID, script: list[Happens]) -> None:
        self._do("capture", checkout, lambda: captures.capture(self.merchant, checkout, cause=CAUSE), script)

    @rule(checkout=checkouts)
    def cancel(self, checkout: UUID) -> None:
        self._do("cancel", checkout, lambda: cancellations.cancel(self.merchant, checkout, cause=CAUSE))

    @rule(checkout=checkouts, ref=st.sampled_from(["r-1", "r-2", "r-3", "r-4"]))
    def refund(self, checkout: UUID, ref: str) -> None:
        def accept() -> None:
            refunds.accept(self.merchant, checkout, ref=ref, cause=CAUSE)

        if ref in self.refs:
            with nothing_moves():
                assert _is_refused(accept) == (self.refs[ref] != checkout)
            return
        was_captured = self.states[checkout] == "captured"
        self._do("refund", checkout, accept)
        if was_captured:
            self.refs[ref] = checkout

    @rule(act=st.sampled_from(["settle refunds", "fail refunds", "carry out delayed calls"]))
    def provider_acts(self, act: str) -> None:
        if act == "carry out delayed calls":
            self.bank.arrive()
        else:
            self.bank.conclude_refunds(fails=act == "fail refunds")

    @rule(checkout=checkouts, tale=st.sampled_from(Tale), newest=st.integers(0, 3), times=st.integers(1, 2))
    def hear(self, checkout: UUID, tale: Tale, newest: int, times: int) -> None:
        rows = Operation.objects.filter(payment__checkout_uuid=checkout).select_related("payment")
        found = list(rows.order_by("-pk"))
        if not found:
            return
        told = tale.about(found[newest % len(found)], self.bank)
        is_ours = tale != Tale.OF_NOTHING
        with contextlib.nullcontext() if is_ours else nothing_moves():
            for _ in range(times):
                notifications.handle_notification(told)
        assert self._moves() == []
        left = Discrepancy.objects.filter(subject=told.payment, kind="missing_here")
        assert left.exists() != is_ours

    @rule(checkout=checkouts)
    def read(self, checkout: UUID) -> None:
        def read() -> None:
            told.append(detailed_reads.read_checkout(self.merchant, checkout).status)

        told: list[str] = []
        self._do("read", checkout, read)
        assert told == [self.states[checkout]]

    @rule()
    def keep_deadlines(self) -> None:
        tasks.end_links()
        assert self._moves() == []
        seen = {checkout: observed.see(checkout, self.states[checkout]) for checkout in self.states}
        tasks.expire_due()
        moves = self._moves()
        for checkout, before in seen.items():
            moved = [(origin, to) for uuid, origin, to in moves if uuid == checkout]
            assert (False, moved) in (
                observed.due(before, "read"),
                observed.due(observed.later(before), "read"),
            )

    @rule(script=scripts)
    def finish_operations(self, script: list[Happens]) -> None:
        self._let(tasks.finish_operations, script)

    @rule(script=scripts)
    def answer_inquiries(self, script: list[Happens]) -> None:
        Inquiry.objects.update(due_at=clock.now())
        self._let(tasks.answer_inquiries, script)

    @rule(seconds=st.sampled_from([1, 2, 5, 11, 11, 30, 61, 121, 650, 3700]))
    def time_passes(self, seconds: int) -> None:
        ageing.let_pass(seconds)

    def _do(
        self, verb: str, checkout: UUID, call: Callable[[], object], script: list[Happens] | None = None
    ) -> None:
        """Run the action, and check that the reference model expects its result and the status changes."""
        seen = observed.see(checkout, self.states[checkout])
        self._script(script)
        still = all(observed.due(each, verb) == (True, []) for each in (seen, observed.later(seen)))
        with nothing_moves() if still else contextlib.nullcontext():
            is_refused = _is_refused(call)
        is_confirmed = verb in ("cancel", "refund") or Verdict.SUCCEEDED in self.bank.heard
        right = [observed.due(each, verb, is_confirmed=is_confirmed) for each in (seen, observed.later(seen))]
        moves = self._moves()
        if Happens.SLOW in (script or ()):  # if the pumps have run during a slow call
            assert is_refused in [refused for refused, _ in right]
            assert {move[1:] for move in moves} <= reference.BY_THEMSELVES
        else:
            assert {move[0] for move in moves} <= {checkout}
            assert (is_refused, [move[1:] for move in moves]) in right, (verb, seen)

    def _let(self, pump: Callable[[], object], script: list[Happens]) -> None:
        """Run a pump, and check that it makes only status changes that can happen without a request."""
        self._script(script)
        with contextlib.suppress(CallerDied):
            pump()
        assert {move[1:] for move in self._moves()} <= reference.BY_THEMSELVES

    def _script(self, script: list[Happens] | None) -> None:
        self.bank.script.clear()
        self.bank.script.extend(script or ())
        self.bank.heard.clear()

    def _moves(self) -> Moves:
        """Return the status changes since the last call.

        Fail if a change is not allowed, or does not start from the checkout's previous status.
        """
        rows = Change.objects.filter(checkout__in=self.states).exclude(origin="").order_by("pk")
        moves: Moves = list(rows.values_list("checkout_id", "origin", "to")[self.moves_seen :])
        for checkout, origin, to in moves:
            assert origin == self.states[checkout] and (origin, to) in reference.PAIRS
            self.states[checkout] = to
        self.moves_seen += len(moves)
        return moves

    def _come_to_rest(self) -> None:
        """End all faults and let time pass. The pumps must bring every checkout to its correct end without help."""
        self.bank.on_the_way.clear()
        for waited, seconds in enumerate(TO_REST):
            if observed.is_at_rest():
                break
            self.bank.conclude_refunds(fails=False)
            self.time_passes(seconds)
            self._let(tasks.expire_due, [])
            self._let(tasks.finish_operations, [])
            self._let(tasks.answer_inquiries, [])
            assert waited == 0 or not Operation.objects.filter(state="in_flight").exists(), "15 s are over"
        observed.check(self.states, self.bank)
        observed.check_rest(self.states, self.bank)

    @invariant()
    def the_books_are_true(self) -> None:
        observed.check(self.states, self.bank)


def _is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except REFUSALS:
        return True
    except UNCLEAR:
        return False
    return False
