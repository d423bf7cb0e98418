"""Sets the lead of a checkout and splits its cost. Mates then pay, pledge or decline their shares.

Rules pay.lead, split.shares.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from checkout import authorizations, expiry, given_up_cards, pledges, settling
from checkout.authorizations import NotPayable, NotTheLead, PaymentResult
from checkout.models import Checkout, Customer, LeadNotification, PaymentRequest
from checkout.split import item_amounts, share_rows, split_amounts
from checkout.split.share_rows import Share
from checkout.states import OperationInProgress, ShareStatus, Status
from config.lib import clock
from config.lib.bulkhead import Slot
from payments import disputes, open_operations, operations, operator_stops, safe_answers
from payments.cause import Cause
from payments.models import Operation, Payment
from payments.provider import AmountRule, CardUse

# ShareNotOpen.status has this value if the share is reserved for a person who took it through the group link.
RESERVED = "kept"
# ShareNotOpen.status has this value if the amount or the units have changed since the mate agreed to them.
CHANGED = "changed"
# What a mate has agreed to pay: the amount in minor units, and how many units of each order line.
Agreed = tuple[int, list[int]]


class ShareNotOpen(Exception):
    """The share cannot be paid, taken, declined or cancelled now.

    `status` is the status of the share or of the order, or one of `disputed`, `kept` (reserved for another person) and
    `changed` (another amount or other units).
    """

    def __init__(self, status: str) -> None:
        super().__init__(f"The share is {status}.")
        self.status = status


class OwnShare(Exception):
    """The lead cannot pay a mate's share, because the money would go back to the lead.

    Rule share.not_the_lead.
    """


class TooLateToCollect(NotPayable):
    """There is too little time left for all mates to pledge before the lead pays (rule pledge.time)."""


def make_lead(checkout_uuid: UUID, customer: Customer) -> None:
    """Make this person the lead. If another person was the lead, end their split and its pledges.

    Raises NotPayable, OperationInProgress.
    """
    with transaction.atomic(durable=True):
        checkout = _lock_changeable(checkout_uuid)
        if checkout.lead_id != customer.pk:
            _reset_split(checkout, people=None, lead=customer)


def split_equally(
    checkout_uuid: UUID,
    people: int,
    *,
    names: Sequence[str] = (),
    lead: UUID | None = None,
    everyone_first: bool = False,
) -> None:
    """Split the cost equally between `people`, including the lead. The lead bears the remainder.

    If `people` is 1, the cost is not split. `names` are the names of the mates in order. A name can be "", and the
    list can be shorter than the number of mates. `lead` is the id of the person who requests the split. With
    `everyone_first`, mates can pledge before the lead pays. Raises ValueError, NotTheLead, NotPayable,
    TooLateToCollect, OperationInProgress.
    """
    with transaction.atomic(durable=True):
        checkout = _lock_changeable_by(lead, checkout_uuid)
        rule = amount_rule(checkout)
        each = equal_share(checkout, people)
        called = [*names, *[""] * people][: people - 1]
        _write_shares(checkout, [Share(each, name) for name in called], rule, everyone_first)


def split(
    checkout_uuid: UUID, shares: Sequence[Share], *, lead: UUID | None = None, everyone_first: bool = False
) -> None:
    """Split the cost into shares with the given amounts. The lead bears the rest.

    `lead` is the id of the person who requests the split. With `everyone_first`, mates can pledge before the
    lead pays. Raises split_amounts.SharesExceedAmount, ValueError, NotTheLead, NotPayable, TooLateToCollect,
    OperationInProgress. Rules split.shares, pledge.choice.
    """
    with transaction.atomic(durable=True):
        checkout = _lock_changeable_by(lead, checkout_uuid)
        split_amounts.leads_part(checkout.amount, [share.amount for share in shares])
        _write_shares(checkout, shares, amount_rule(checkout), everyone_first)


def split_by_item(
    checkout_uuid: UUID,
    mates: Sequence[tuple[str, Sequence[int]]],
    free: Sequence[int],
    *,
    lead: UUID | None = None,
    everyone_first: bool = False,
) -> None:
    """Split the cost by the units of each order line. The lead bears the rest.

    `mates` contains, for each mate, the name and the number of units of each order line. `free` are the units that
    mates can take through the group link. If the amount for all free units together cannot be charged to a card, the
    lead bears them. `lead` and `everyone_first` are as in `split`. Raises ValueError, NotTheLead, NotPayable,
    TooLateToCollect, OperationInProgress. Rules split.by_item, split.free_units.
    """
    with transaction.atomic(durable=True):
        checkout = _lock_changeable_by(lead, checkout_uuid)
        rule = amount_rule(checkout)
        item_amounts.check_units(checkout.bill, [*(units for _name, units in mates), free])
        requests = [(name, units) for name, units in [*mates, ("", free)] if any(units)]
        costs = [item_amounts.cost_of(checkout.bill, units, step=rule.step) for _name, units in requests]
        shares = [
            Share(cost.amount, name, units=tuple(units))
            for (name, units), cost in zip(requests, costs, strict=True)
            if name or rule.allows(cost.amount)
        ]
        split_amounts.leads_part(checkout.amount, [share.amount for share in shares])
        _write_shares(checkout, shares, rule, everyone_first)


def amount_rule(checkout: Checkout) -> AmountRule:
    """Return the rule that a mate's amount must follow.

    A mate can be asked to pay only an amount that can be charged to a card. Rule split.minimum.
    """
    return safe_answers.amount_rule(checkout.currency)


def equal_share(checkout: Checkout, people: int) -> int:
    """Return the amount in minor units that each mate bears if `people` people share a checkout equally."""
    return split_amounts.equal_shares(checkout.amount, people, step=amount_rule(checkout).step)[1]


def max_people(checkout: Checkout) -> int:
    """Return the largest number of people who can share a checkout equally."""
    return split_amounts.max_people(checkout.amount, minimum=amount_rule(checkout).minimum)


def _reset_split(checkout: Checkout, **facts: Any) -> None:
    """Remove the shares of an earlier split, and write these facts about the order."""
    if checkout.has_mates:
        checkout.touch(**facts)
        share_rows.replace_shares(checkout, {})
    else:
        checkout.note(**facts)


def _write_shares(
    checkout: Checkout, shares: Sequence[Share], rule: AmountRule, everyone_first: bool
) -> None:
    """Write the shares. Raises ValueError if one of the amounts cannot be charged to a card. Rule split.minimum."""
    if not all(rule.allows(share.amount) for share in shares):
        raise ValueError(f"Each share must be {rule}: cards cannot be charged other amounts.")
    if everyone_first and not pledges.can_collect(checkout, checkout.locked_at):
        raise TooLateToCollect(checkout.status)
    if not shares:
        _reset_split(checkout, people=1)
        return
    was_split = checkout.has_mates
    checkout.touch(people=len(shares) + 1)
    by_position = dict(enumerate(shares, start=2))
    missing = share_rows.replace_shares(checkout, by_position) if was_split else by_position
    share_rows.create_shares(checkout, missing)
    if everyone_first or checkout.payment_requests.exclude(status=ShareStatus.DRAFT).exists():
        pledges.open_links(checkout)


def _lock_changeable(checkout_uuid: UUID) -> Checkout:
    """Lock and return a checkout whose lead and split can still change.

    Raises NotPayable if the checkout is no longer unpaid, and OperationInProgress while a card operation is open.
    Rule split.until_card.
    """
    checkout = Checkout.objects.locked(checkout_uuid)
    if checkout.status != Status.CREATED:
        raise NotPayable(checkout.status)
    if open_operations.open_operation(checkout.pk) is not None:
        raise OperationInProgress
    return checkout


def _lock_changeable_by(lead: UUID | None, checkout_uuid: UUID) -> Checkout:
    """Lock and return the checkout as `_lock_changeable` does.

    Raises NotTheLead if another person is the lead now.
    """
    checkout = _lock_changeable(checkout_uuid)
    if checkout.is_led_by_another(lead):
        raise NotTheLead
    return checkout


def pay(
    share_uuid: UUID,
    *,
    card: CardUse,
    mate: Customer,
    cause: Cause,
    agreed: Agreed | None = None,
    claim: str = "",
    admit: Callable[[], None] = lambda: None,
) -> PaymentResult:
    """Hold the share's amount on a mate's card.

    The pump captures the hold later, if mates may still be charged at that time. Before the lead has paid, the hold
    is a pledge (rules pledge.*). `agreed` is the amount and the units that the mate has agreed to. If the share's
    amount or units are now different, ShareNotOpen is raised.

    If a person took the share through the group link, only the browser with their `claim` can pay it (rule group.pays).
    As in `authorizations.authorize`, an earlier card can be given up for this card, and `admit` is called. Raises
    PaymentRequest.DoesNotExist, ShareNotOpen, OwnShare, OperationInProgress, operator_stops.MerchantSuspended,
    operator_stops.AllStopped, bulkhead.Busy. Rule share.taken.
    """

    def begin(slot: Slot) -> Operation:
        with transaction.atomic(durable=True):
            share, _ = lock_share(share_uuid)
            status = _payability(share, card, mate, claim, agreed)
            if status == ShareStatus.OPEN:
                slot.take()
                admit()
                operation = _begin_authorization(share, card, cause)
                share.begin_to_pay(mate, claim)
        if status != ShareStatus.OPEN:
            raise ShareNotOpen(status)
        return operation

    return authorizations.hold(begin)


def _begin_authorization(share: PaymentRequest, card: CardUse, cause: Cause) -> Operation:
    payment = authorizations.new_payment(share.checkout, card, Payment.Kind.SHARE, of=share)
    return operations.begin(payment, Operation.Kind.AUTHORIZE, now=clock.now(), cause=cause)


def _payability(
    share: PaymentRequest, card: CardUse, mate: Customer, claim: str, agreed: Agreed | None
) -> str:
    """Return `open` if the share can be paid now, otherwise the reason why it cannot.

    If another card is already paying the share, that card can be given up for the new card. Raises OwnShare,
    OperationInProgress, operator_stops.MerchantSuspended, operator_stops.AllStopped. Rules share.one_card, group.pays.
    """
    checkout, now = share.checkout, clock.now()
    expire_if_late(share, now)
    if reason := _disagreement(share, claim, agreed, now):
        return reason
    expiry.expire_if_due(checkout, now)
    if checkout.status not in (Status.CREATED, Status.CAPTURED):
        return checkout.status if share.status == ShareStatus.OPEN else share.status
    if share.status not in (ShareStatus.OPEN, ShareStatus.PAYING):
        return share.status
    if checkout.status == Status.CAPTURED and (reason := _reason_not_to_charge(share)):
        return reason
    if mate.pk == checkout.lead_id:
        raise OwnShare
    operator_stops.check(checkout.merchant)
    operation = open_operations.open_operation(share.pk)
    if operation is not None and operation.payment.card_token != card.token:
        given_up_cards.give_up_for_another_card(checkout, operation, now)
        share.refresh_from_db()
    if share.status != ShareStatus.OPEN or open_operations.live_payment(share.pk) is not None:
        raise OperationInProgress
    return share.status


def _disagreement(share: PaymentRequest, claim: str, agreed: Agreed | None, now: datetime) -> str:
    """Return the reason why this mate cannot have the share in its current state, or "" if the mate can."""
    if share.is_reserved_for_another(claim, now):
        return RESERVED
    return CHANGED if agreed not in (None, (share.amount, share.units)) else ""


def _reason_not_to_charge(share: PaymentRequest) -> str:
    """Return the reason why mates cannot pay a share of a captured order now, or "" if they can."""
    if disputes.blocking_dispute(share.checkout_id) is not None:
        return "disputed"
    can_refund = settling.can_refund_to_lead(share.checkout, share.amount)
    return "" if can_refund else ShareStatus.CANCELLED


def decline(share_uuid: UUID, claim: str = "") -> PaymentRequest:
    """Decline a share at the request of its mate, so that the lead bears it.

    If a person took the share through the group link, it can be declined only with their `claim`. Raises
    ShareNotOpen.
    """
    return _end_share(share_uuid, ShareStatus.DECLINED, statuses=(ShareStatus.OPEN,), claim=claim)


def cancel(share_uuid: UUID) -> PaymentRequest:
    """Cancel an open, declined or pledged share at the request of the lead, who then bears it.

    Raises ShareNotOpen.
    """
    statuses = (ShareStatus.OPEN, ShareStatus.DECLINED, ShareStatus.PLEDGED)
    return _end_share(share_uuid, ShareStatus.CANCELLED, statuses=statuses)


def _end_share(
    share_uuid: UUID, to: ShareStatus, *, statuses: Sequence[ShareStatus], claim: str = ""
) -> PaymentRequest:
    """Decline or cancel a share that has one of `statuses`.

    A share that already has the status `to` is returned unchanged (rule share.ended_once).
    """
    with transaction.atomic(durable=True):
        share, checkout = lock_share(share_uuid)
        now = clock.now()
        if to == ShareStatus.DECLINED and share.is_reserved_for_another(claim, now):
            raise ShareNotOpen(RESERVED)
        expire_if_late(share, now)
        if share.status in statuses:
            if share.status == ShareStatus.PLEDGED:
                pledges.end_pledge(share, now)
            # If the share was taken through the group link, only the browser that declines it can reopen it later.
            is_theirs = to == ShareStatus.DECLINED and claim == share.claim_digest
            share.move(to, ended_at=now, **({"claim_digest": claim} if is_theirs else {}))
            if to == ShareStatus.DECLINED:
                LeadNotification.queue(checkout, LeadNotification.Kind.DECLINED, now, share)
            if checkout.status == Status.CREATED:
                pledges.notify_if_all_in(checkout, now)
    if share.status != to:
        raise ShareNotOpen(share.status)
    return share


def expire(share_uuid: UUID) -> None:
    """Expire a share if its pay link has ended."""
    with transaction.atomic(durable=True):
        share, _ = lock_share(share_uuid)
        expire_if_late(share, clock.now())


def expire_all_late(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime) -> bool:
    """Expire the shares of an order whose pay links have ended; return whether there were any.

    Returns False without a lock if no link has ended, or if a refund or a dispute pauses the links. Rules share.ends,
    share.pauses.
    """
    late = [share.pk for share in shares if _is_late(share, now)]
    if not late or checkout.status != Status.CAPTURED or disputes.has_open_dispute(checkout.pk):
        return False
    _expire_all(checkout.pk, late, now)
    return True


def _expire_all(checkout_uuid: UUID, share_uuids: Sequence[UUID], now: datetime) -> None:
    with transaction.atomic(durable=True):
        checkout = Checkout.objects.locked(checkout_uuid)
        for share in PaymentRequest.objects.filter(pk__in=share_uuids):
            share.checkout = checkout
            expire_if_late(share, now)


def _is_late(share: PaymentRequest, now: datetime) -> bool:
    return share.status == ShareStatus.OPEN and share.expires_at is not None and now >= share.expires_at


def expire_if_late(share: PaymentRequest, now: datetime) -> None:
    """Expire an open share whose pay link has ended, unless the order is being refunded or is disputed.

    Must be called with the checkout locked. Rules share.ends, share.pauses.
    """
    if not _is_late(share, now) or share.checkout.status != Status.CAPTURED:
        return
    if not disputes.has_open_dispute(share.checkout_id):
        share.move(ShareStatus.EXPIRED, ended_at=share.expires_at)


def lock_share(share_uuid: UUID) -> tuple[PaymentRequest, Checkout]:
    """Lock the checkout to which a share belongs. Return the share and the checkout, both read under the lock.

    Raises PaymentRequest.DoesNotExist.
    """
    of_share = PaymentRequest.every.only("checkout_id").get(pk=share_uuid)
    checkout = Checkout.objects.locked(of_share.checkout_id)
    share = PaymentRequest.every.get(pk=share_uuid)
    share.checkout = checkout
    return share, checkout
