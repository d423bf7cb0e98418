"""A pledge: the real verbs, the real pump and the sandbox bank take the steps of the model."""

from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from checkout import authorizations, cancellations, captures, expiry, given_up_cards, mate_shares, outcomes
from checkout.group import pledging
from checkout.models import Checkout, PaymentRequest
from checkout.split.share_rows import Share
from checkout.states import Status
from config.lib import clock
from payments import open_operations, operation_queue, operations, operator_stops
from payments.models import Operation, Payment
from payments.provider import CardUse, Outcome, Verdict, current_provider
from payments.providers.sandbox import bank
from payments.providers.sandbox.models import Charge
from tests import factories, mates, outages
from tests.factories import CAUSE, CustomerFactory
from tests.model.protocols import pledge_state
from tests.model.protocols.pledge import Pledge
from tests.model.protocols.pledge_state import State
from tests.model.protocols.replaying.moves import Move
from tests.model.protocols.replaying.replay import World, replay

LEADS = "4242424242424242"
NUMBERS = {
    "good": mates.FINNS,
    "declined": "4000000000000002",
    "leads": LEADS,
    "challenged": mates.CHALLENGED,
}
CALL_SECONDS = 5.0
# For each state of the bank's charge, the name of this state in the model.
BANK = {
    "challenged": "challenged",
    "held": "held",
    "declined": "declined",
    "captured": "captured",
    "voided": "released",
}


class Pledging(World[State]):
    """An unpaid order of £90.00. The lead asks Finn for £20.00, and asks the mates to pledge first."""

    def __init__(self, order: Checkout) -> None:
        self.order, self.lead, self.mate = order, CustomerFactory.create(), CustomerFactory.create()
        mate_shares.make_lead(order.pk, self.lead)
        self.name = "Finn"
        self._split(Share(2000, self.name))
        self.share: UUID = order.payment_requests.get().pk

    def _split(self, share: Share) -> None:
        mate_shares.split(self.order.pk, [share], lead=self.lead.pk, everyone_first=True)

    def kind(self, move: Move[State], before: State) -> Hashable:
        """Return the kind of a step: the cards that it is about and, for most steps, the statuses."""
        act, *rest = move.act
        is_about_card = act in self.of_card
        places = [int(rest[0])] if is_about_card else pledge_state.live_of(before)
        cards = [before.payments[place] for place in places]
        is_repeated = act == "hear" and not cards[0].is_asked
        is_of_bank = is_about_card and (is_repeated or act not in ("hear", "taken", "voided"))
        statuses = None if is_of_bank else (before.share, before.is_replaced, act == "voided" or before.order)
        if not is_about_card:
            return *((card.is_asked, card.card == "leads") for card in cards), statuses
        return *map(_without_number, cards), statuses

    def take(self, move: Move[State], before: State) -> None:
        operator_stops.reread_stops()
        # The test can take longer than a hold lasts, so the two minutes begin again before each step.
        now = clock.now()
        held = Checkout.objects.filter(pk=self.order.pk, status=Status.AUTHORIZED)
        held.update(authorized_at=now, capture_before=now + settings.HOLD)
        act, *rest = move.act
        if act in self.of_order:
            self.of_order[act](self)
        elif act == "pay":
            outages.break_down("authorize", "down")
            mates.pay(PaymentRequest.objects.get(pk=self.share), NUMBERS[rest[0]], self.mate)
        else:
            self.of_card[act](self, self._payments()[int(rest[0])])

    def _payments(self) -> list[Payment]:
        return list(Payment.objects.filter(subject=self.share).order_by("created_at"))

    def withdraw(self) -> None:
        pledging.withdraw(self.share, mate=self.mate.pk)

    def keep(self) -> None:
        mate_shares.cancel(self.share)

    def replace(self) -> None:
        self._split(Share(1500, "Bob"))

    def change(self) -> None:
        self._split(Share(2100, self.name))

    def rename(self) -> None:
        self.name = f"{self.name}n"
        amount = PaymentRequest.every.get(pk=self.share).amount
        self._split(Share(amount, self.name))

    def stop(self) -> None:
        factories.stop(self.order.merchant)

    def end_pledges_of_stopped(self) -> None:
        assert pledging.orders_of_stopped_merchants() == [(self.order.merchant_id, self.order.pk)]
        pledging.end_of_stopped_merchant(self.order.pk)

    def lead_pays(self) -> None:
        outages.break_down("authorize", "down")
        card = CardUse(bank.tokenise(subject=self.order.pk, number=LEADS))
        authorizations.authorize(self.order.pk, card=card, lead=self.lead, cause=CAUSE)

    def lead_is_held(self) -> None:
        self._arrive(self._leads_operation())
        self._finish(self._leads_operation())

    def lead_is_declined(self) -> None:
        declined = Outcome(Verdict.DECLINED, reason="declined")
        factories.record(self._leads_operation(), declined)

    def _leads_operation(self) -> Operation:
        found = open_operations.open_operation(self.order.pk)
        assert found is not None
        return found

    def capture_order(self) -> None:
        captures.capture(self.order.merchant, self.order.pk, cause=CAUSE)

    def cancel(self) -> None:
        cancellations.cancel(self.order.merchant, self.order.pk, cause=CAUSE)

    def end_late(self) -> None:
        self.order.refresh_from_db()
        factories.make_late(self.order)
        expiry.expire_one_if_due(self.order.pk)

    of_order: dict[str, Callable[["Pledging"], None]] = {
        "withdraw": withdraw,
        "keep": keep,
        "replace": replace,
        "change": change,
        "rename": rename,
        "stop": stop,
        "stopped": end_pledges_of_stopped,
        "lead": lead_pays,
        "held": lead_is_held,
        "declined": lead_is_declined,
        "capture": capture_order,
        "cancel": cancel,
        "lapse": end_late,
        "expire": end_late,
    }

    def arrive(self, payment: Payment) -> None:
        self._arrive(_operation(payment, "authorize"))

    def _arrive(self, operation: Operation) -> None:
        """Let an authorization arrive at the bank. The bank's answer is lost."""
        card = CardUse(operation.payment.card_token, operation.payment.return_url)
        current_provider().authorize(operation, card, CALL_SECONDS)

    def hear(self, payment: Payment) -> None:
        operation = _operation(payment, "authorize")
        if operation.ended_at is None:
            self._finish(operation)
        else:
            outcome = operations.look_up(operation)
            recorded = outcomes.record_outcome(self.order.pk, operation.pk, outcome, lease=None)
            assert not recorded.is_kept

    def silent(self, payment: Payment) -> None:
        outages.pass_time(_operation(payment, "authorize"), minutes=1)
        given_up_cards.allow_another_card(self.order.pk, self.share)

    def confirm(self, payment: Payment) -> None:
        bank.answer_challenge(key=_operation(payment, "authorize").pk, is_confirmed=True)

    def end_challenge(self, payment: Payment) -> None:
        """Let the mate take another card.

        If the card has already been given up, let the time for its confirmation end.
        """
        operation = _operation(payment, "authorize")
        if open_operations.open_operation(self.share) == operation:
            given_up_cards.allow_another_card(self.order.pk, self.share)
            return
        late = given_up_cards.CHALLENGE + timedelta(minutes=1)
        outages.pass_time(operation, seconds=late.total_seconds())
        assert given_up_cards.give_up_if_due(
            self.order.pk, operation.pk, Verdict.NEEDS_ACTION, age=late, is_waited_for=False
        )

    def never(self, payment: Payment) -> None:
        outages.pass_time(_operation(payment, "authorize"), hours=24)
        self._finish(_operation(payment, "authorize"))

    def capture(self, payment: Payment) -> None:
        current_provider().capture(self._claim(_operation(payment, "capture")), CALL_SECONDS)

    def refuse(self, payment: Payment) -> None:
        Charge.objects.filter(payment=payment.pk).update(state="voided")
        self.capture(payment)

    def end_capture(self, payment: Payment) -> None:
        self._finish(_operation(payment, "capture"))

    def void(self, payment: Payment) -> None:
        current_provider().void(self._claim(_operation(payment, "void")), CALL_SECONDS)

    def end_void(self, payment: Payment) -> None:
        self._finish(_operation(payment, "void"))

    of_card: dict[str, Callable[["Pledging", Payment], None]] = {
        "arrive": arrive,
        "hear": hear,
        "silent": silent,
        "confirm": confirm,
        "end_challenge": end_challenge,
        "never": never,
        "take": capture,
        "refuse": refuse,
        "taken": end_capture,
        "void": void,
        "voided": end_void,
    }

    def _claim(self, operation: Operation) -> Operation:
        Operation.objects.filter(pk=operation.pk).update(next_attempt_at=mates.LONG_AGO)
        (claimed,) = operation_queue.claim(limit=1, operation_uuid=operation.pk)
        return claimed

    def _finish(self, operation: Operation) -> None:
        Operation.objects.filter(pk=operation.pk).update(next_attempt_at=mates.LONG_AGO)
        mates.finish(operation)

    def seen(self, expected: State) -> Any:
        self.order.refresh_from_db()
        share = PaymentRequest.every.get(pk=self.share)
        is_lead_asked = open_operations.open_operation(self.order.pk) is not None
        cards = [_seen_card(payment) for payment in self._payments()]
        return self.order.status, is_lead_asked, share.status, share.replaced_at is not None, cards

    def shown(self, state: State) -> Any:
        cards = [
            payment._replace(card="", bank=payment.bank.replace("gone", "")) for payment in state.payments
        ]
        return state.order, state.is_lead_asked, state.share, state.is_replaced, cards


def _without_number(card: pledge_state.Payment) -> pledge_state.Payment:
    """Return the card without its name, if the name does not matter any more.

    After the bank's decision, only one difference matters: whether the card is the lead's.
    """
    is_decided = card.bank not in ("", "challenged") and card.card != "leads"
    return card._replace(card="") if is_decided else card


def _operation(payment: Payment, kind: str) -> Operation:
    return Operation.objects.select_related("payment").get(payment=payment, kind=kind)


def _seen_card(payment: Payment) -> pledge_state.Payment:
    charge = Charge.objects.filter(payment=payment.pk).first()
    stages = {row.kind: _stage(row) for row in payment.operations.all()}
    return pledge_state.Payment(
        card="",
        status=payment.status,
        is_asked=stages["authorize"] != "ended",
        is_challenged=payment.operations.filter(state=Operation.State.NEEDS_ACTION).exists(),
        is_abandoned=payment.abandoned_at is not None,
        bank=BANK[charge.state] if charge else "",
        capture=stages.get("capture", ""),
        void=stages.get("void", ""),
    )


def _stage(operation: Operation) -> str:
    if operation.ended_at is not None:
        return "ended"
    return "planned" if operation.state == Operation.State.PLANNED else "sent"


@pytest.mark.django_db
def test_steps_of_each_kind_are_steps_of_the_code(unpaid: Checkout) -> None:
    taken = replay(Pledge(), Pledging(unpaid))
    assert taken == {"pay", *Pledging.of_order, *Pledging.of_card}
