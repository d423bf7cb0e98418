"""A provider in memory with scripted failures. The tests compare its records with ours."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from uuid import UUID

from django.http import HttpRequest

from config.lib import clock
from payments.models import Operation, Payment
from payments.provider import (
    AmountRule,
    Books,
    CaptureRecord,
    Card,
    CardForm,
    CardUse,
    ForgedNotification,
    Notification,
    Outcome,
    ProviderUnreachable,
    RefundRecord,
    Verdict,
)


class Happens(StrEnum):
    """What happens to a call at the provider."""

    ANSWERED = "answered"
    ANSWER_LOST = "answer lost: it was done"
    NEVER_ARRIVED = "never arrived"
    DELAYED = "delayed: arrives when the caller has given up, if ever"
    CALLER_DIED = "the caller died when it was done"
    REFUSED = "refused"
    ASKED = "asked: the payer must confirm"
    SLOW = "slow: done, but the caller's lease has run out when the answer comes"
    GARBLED = "garbled: done, but answered with another amount"


class Silence(Exception):
    """The call gets no response."""


class CallerDied(BaseException):
    """The process that made the call has died."""


@dataclass
class Charge:
    """The provider's record of a payment."""

    account: UUID
    amount: int
    currency: str
    state: str  # held, captured, voided, challenged, declined
    returned: int = 0

    @property
    def taken(self) -> int:
        return self.amount - self.returned if self.state == "captured" else 0


@dataclass
class Call:
    """The provider's record of the call that used a key, and its response."""

    kind: str
    payment: UUID
    verdict: Verdict
    amount: int
    reason: str = ""


class ScriptedProvider:
    """A payments.provider.Provider with scripted failures. It uses operations' ids as idempotency keys."""

    urls = ""
    page_origins: tuple[str, ...] = ()
    payment_origins: tuple[str, ...] = ()

    def __init__(self, during_slow_call: Callable[[], None]) -> None:
        self.during_slow_call = during_slow_call  # called while the service waits for a slow call
        self.reset()

    def reset(self) -> None:
        self.script: deque[Happens] = deque()
        self.charges: dict[UUID, Charge] = {}
        self.calls: dict[UUID, Call] = {}
        self.on_the_way: list[Callable[[], Call]] = []
        self.heard: list[Verdict] = []  # the verdicts of all answers since the script was last set

    @property
    def key_life(self) -> timedelta:
        return timedelta(hours=24)

    def amount_rule(self, currency: str) -> AmountRule:
        return AmountRule()

    def open_card_form(self, form: CardForm) -> str:
        return f"https://bank.example/card/{form.subject}"

    def register(self, payment: Payment, patience: float) -> Outcome:
        return Outcome(Verdict.SUCCEEDED)

    def authorize(self, operation: Operation, card: CardUse, patience: float) -> Outcome:
        return self._ask(operation, self._hold)

    def capture(self, operation: Operation, patience: float) -> Outcome:
        return self._ask(operation, self._take)

    def void(self, operation: Operation, patience: float) -> Outcome:
        return self._ask(operation, self._release)

    def refund(self, operation: Operation, patience: float) -> Outcome:
        return self._ask(operation, self._give_back)

    def look_up(self, operation: Operation, patience: float) -> Outcome:
        happens = self._next()
        if happens == Happens.DELAYED:  # the look-up overtakes the call that it looks for
            overtaken = operation.pk not in self.calls
            self.arrive()
            if overtaken:
                return self._told(Outcome(Verdict.NOT_FOUND))
        elif happens not in (Happens.ANSWERED, Happens.REFUSED, Happens.ASKED):
            raise Silence
        call = self.calls.get(operation.pk)
        missing = Outcome(Verdict.NOT_FOUND, is_vouched=not self.on_the_way)
        return self._told(self._outcome(operation.pk, call) if call else missing)

    def parse_notifications(self, request: HttpRequest) -> Iterable[Notification]:
        raise ForgedNotification

    def movements(self, payment: Payment) -> Books:
        """Return the capture and the refunds of a payment. The script can make this call fail too."""
        if self._next() not in (Happens.ANSWERED, Happens.REFUSED, Happens.ASKED):
            raise ProviderUnreachable
        charge = self.charges.get(payment.pk)
        if charge is None:
            return Books()
        of_payment = [(key, call) for key, call in self.calls.items() if call.payment == payment.pk]
        taken = [
            key for key, call in of_payment if (call.kind, call.verdict) == ("capture", Verdict.SUCCEEDED)
        ]
        refunds = [
            RefundRecord(str(key), call.amount, charge.currency, call.verdict, clock.now(), operation=key)
            for key, call in of_payment
            if call.kind == "refund" and not call.reason
        ]
        capture = CaptureRecord(str(taken[0]), charge.amount, charge.currency, clock.now()) if taken else None
        return Books(is_held=charge.state == "held", capture=capture, refunds=refunds)

    def changed(self, since: datetime) -> Iterable[UUID]:
        return list(self.charges)

    def missing(self) -> Iterable[str]:
        return ()

    def arrive(self) -> None:
        """Let the delayed calls arrive, although their callers no longer wait for them."""
        on_the_way, self.on_the_way = self.on_the_way, []
        for call in on_the_way:
            call()

    def answer_challenge(self, payment: UUID, *, is_confirmed: bool) -> None:
        """Let the payer answer the bank's challenge. If the challenge is no longer open, there is no effect."""
        charge = self.charges.get(payment)
        for call in self.calls.values():
            if (
                charge
                and charge.state == "challenged"
                and (call.payment, call.kind) == (payment, "authorize")
            ):
                charge.state = "held" if is_confirmed else "declined"
                call.verdict = Verdict.SUCCEEDED if is_confirmed else Verdict.DECLINED

    def conclude_refunds(self, *, fails: bool) -> None:
        """Settle the pending refunds or make them fail."""
        for call in self.calls.values():
            if call.kind == "refund" and call.verdict == Verdict.PENDING:
                call.verdict = Verdict.FAILED if fails else Verdict.SUCCEEDED
                self.charges[call.payment].returned += 0 if fails else call.amount

    def _next(self) -> Happens:
        return self.script.popleft() if self.script else Happens.ANSWERED

    def _ask(self, operation: Operation, act: Callable[[Operation, Happens], tuple[Verdict, str]]) -> Outcome:
        happens = self._next()
        if happens == Happens.NEVER_ARRIVED:
            raise Silence
        if happens == Happens.DELAYED:
            self.on_the_way.append(partial(self._do, operation, act, Happens.ANSWERED))
            raise Silence
        call = self._do(operation, act, happens)
        if happens == Happens.ANSWER_LOST:
            raise Silence
        if happens == Happens.CALLER_DIED:
            raise CallerDied
        if happens == Happens.SLOW:
            self.during_slow_call()
        outcome = self._outcome(operation.pk, call)
        if happens == Happens.GARBLED:
            return replace(outcome, amount=call.amount + 1)
        return self._told(outcome)

    def _told(self, outcome: Outcome) -> Outcome:
        self.heard.append(outcome.verdict)
        return outcome

    def _do(
        self,
        operation: Operation,
        act: Callable[[Operation, Happens], tuple[Verdict, str]],
        happens: Happens,
    ) -> Call:
        if operation.pk not in self.calls:
            verdict, reason = act(operation, happens)
            self.calls[operation.pk] = Call(
                operation.kind, operation.payment_id, verdict, operation.amount, reason
            )
        return self.calls[operation.pk]

    def _hold(self, operation: Operation, happens: Happens) -> tuple[Verdict, str]:
        state, verdict = {
            Happens.REFUSED: ("declined", Verdict.DECLINED),
            Happens.ASKED: ("challenged", Verdict.NEEDS_ACTION),
        }.get(happens, ("held", Verdict.SUCCEEDED))
        payment = operation.payment
        self.charges[payment.pk] = Charge(payment.merchant_id, operation.amount, payment.currency, state)
        return verdict, "insufficient_funds" if state == "declined" else ""

    def _take(self, operation: Operation, happens: Happens) -> tuple[Verdict, str]:
        charge = self.charges[operation.payment_id]
        if happens == Happens.REFUSED or charge.state != "held":
            return Verdict.FAILED, "refused" if charge.state == "held" else f"already_{charge.state}"
        charge.state = "captured"
        return Verdict.SUCCEEDED, ""

    def _release(self, operation: Operation, happens: Happens) -> tuple[Verdict, str]:
        charge = self.charges.get(operation.payment_id)
        if charge is None or charge.state == "captured":
            return Verdict.FAILED, "already_captured" if charge else "unknown_payment"
        charge.state = "voided"
        return Verdict.SUCCEEDED, ""

    def _give_back(self, operation: Operation, happens: Happens) -> tuple[Verdict, str]:
        charge = self.charges[operation.payment_id]
        if happens == Happens.REFUSED or charge.taken < operation.amount:
            return Verdict.FAILED, "refused" if charge.taken else "nothing_to_refund"
        return Verdict.PENDING, ""

    def _outcome(self, key: UUID, call: Call) -> Outcome:
        """Return the outcome of a call. Each payment has a different card."""
        asks = call.verdict == Verdict.NEEDS_ACTION
        return Outcome(
            call.verdict,
            reference=str(key),
            reason=call.reason,
            action_url=f"https://bank.example/challenge/{key}" if asks else "",
            card=Card("visa", "4242", f"card of {call.payment}"),
            amount=call.amount,
        )
