"""A builder for each situation in the table of pages. Builders move money at the sandbox bank. Rule page.viewer."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from checkout import cancellations, captures, expiry, mate_shares, refunds
from checkout.models import Checkout, PaymentRequest
from config.lib import clock
from hosted_page.models import SmsMessage
from hosted_page.status.cells import Situation, Viewer
from payments import operator_stops
from payments.models import Operation
from payments.providers.sandbox import fault_injection
from tests import factories, mates
from tests.factories import CAUSE, make_late
from tests.hosted_page.browsers import ASKS, Mate, Payer
from tests.hosted_page.group.test_group_page import Guest
from tests.hosted_page.status.party import (
    VIEWERS_OF_SHARES,
    Party,
    View,
    at_order,
    at_share,
    captured_without_mates,
    lead_without_mates,
)
from tests.outside import RETURNS, come_back, decide, dispute, refund_outside, settle

S, V = Situation, Viewer
VISA = "4242424242424242"
BEFORE_CAPTURE = (V.LEAD, V.ORDER_LINK, V.HOLDER, V.REFUSED, V.FORMER, V.GROUP_LINK)
ENDED = (V.LEAD, V.ORDER_LINK, V.REFUSED, V.FORMER, V.GROUP_LINK)
PAYERS_OF_SHARE = (V.PAID, V.PAY_LINK)
NOT_ASKED = (V.REFUSED, V.FORMER, V.LATE)


@dataclass(frozen=True)
class Scene:
    """The page of each viewer in a situation. `bill` is the lead's page of a split order after the capture."""

    views: dict[Viewer, View]
    bill: View | None = None


def _after_capture(party: Party, *viewers: Viewer, other: Payer | None = None) -> Scene:
    """Return the pages that the viewers of a split order see, and the lead's page of another order without mates.

    The lead of the split order sees the bill instead of the table's texts.
    """
    views = party.views(*viewers)
    if other is not None:
        views |= _views_of_order(other)
    return Scene(views, bill=at_order(party.lead))


def _views_of_order(lead: Payer) -> dict[Viewer, View]:
    return {V.LEAD: at_order(lead), V.ORDER_LINK: at_order(Payer(lead.checkout))}


def _captured(order: Checkout) -> Party:
    party = Party(order)
    party.capture()
    return party


def _with_every_mate(order: Checkout) -> Party:
    """Return a captured order.

    Finn's share is reimbursed, and Amy is asked to pay. The other mates are no longer asked.
    """
    party = _captured(order)
    party.reimburse()
    party.end_shares()
    return party


def _refund(order: Checkout) -> None:
    refunds.accept(order.merchant, order.pk, ref=f"r-{order.pk}", cause=CAUSE)


def _unpaid(order: Checkout) -> Scene:
    party, other = Party(order), _collecting_party(factories.checkout(order.merchant))
    SmsMessage.objects.all().delete()  # otherwise the lead's number must wait for its next code
    party.split()
    views = party.views(V.LEAD, V.ORDER_LINK, V.HOLDER, V.GROUP_LINK)
    return Scene(views | other.views(V.REFUSED, V.FORMER))


def _collecting_party(order: Checkout) -> Party:
    party = Party(order)
    party.collect()
    return party


def _collecting(order: Checkout) -> Scene:
    party = _collecting_party(order)
    Mate(party.share(2)).pay()
    mates.pay(party.share(6), mates.AMYS)
    PaymentRequest.objects.filter(pk=party.share(3).pk).update(name="")  # for a sentence without a name
    return Scene(party.views(V.LEAD, V.HOLDER, V.GROUP_LINK))


def _stopped(order: Checkout) -> Scene:
    party = _collecting_party(order)
    operator_stops.suspend(order.merchant, reason="test")
    return Scene(party.views(V.HOLDER, V.GROUP_LINK))


def _all_in(order: Checkout) -> Scene:
    party = _collecting_party(order)
    Mate(party.share(2)).pay()
    for position in (3, 6):
        mate_shares.cancel(party.share(position).pk)
    return Scene(party.views(V.GROUP_LINK))


def _pledged(order: Checkout) -> Scene:
    party = _collecting_party(order)
    finn = Mate(party.share(2))
    finn.pay()
    return Scene({V.HOLDER: at_share(finn), V.PAY_LINK: party.view(V.PAY_LINK)})


def _pledge_checked(order: Checkout) -> Scene:
    party = _collecting_party(order)
    finn = Mate(party.share(2))
    finn.pay()
    party.pay_by_card()
    return Scene({V.HOLDER: at_share(finn), V.PAY_LINK: party.view(V.PAY_LINK)})


def _suspended(order: Checkout) -> Scene:
    party, other = _captured(order), lead_without_mates(order)
    operator_stops.suspend(order.merchant, reason="test")
    return Scene(_views_of_order(other) | party.views(V.HOLDER, V.GROUP_LINK))


def _paying(party: Party, other: Payer) -> Scene:
    """Return the pages of an order and of Finn's share, while a card payment for each of them is in progress."""
    of_share = {V.HOLDER: at_share(party.finn), V.PAY_LINK: party.view(V.PAY_LINK)}
    return Scene(_views_of_order(other) | of_share)


def _confirm(order: Checkout) -> Scene:
    party = _captured(order)
    party.finn.pay(mates.CHALLENGED)
    return _paying(party, lead_without_mates(order, ASKS))


def _checking(order: Checkout) -> Scene:
    party = _captured(order)
    fault_injection.set_fault(verb="authorize", mode="done_then_reset", times=2)
    party.finn.pay()
    return _paying(party, lead_without_mates(order, VISA))


def _silent(order: Checkout) -> Scene:
    scene = _checking(order)
    Operation.objects.filter(ended_at=None).update(created_at=mates.LONG_AGO)
    return scene


def _taking(order: Checkout) -> Scene:
    party = _captured(order)
    party.finn.pay()
    return Scene({V.HOLDER: at_share(party.finn), V.PAY_LINK: party.view(V.PAY_LINK)})


def _taking_silent(order: Checkout) -> Scene:
    scene = _taking(order)
    Operation.objects.filter(ended_at=None).update(created_at=mates.LONG_AGO)
    return scene


def _held_party(order: Checkout) -> Party:
    party = Party(order)
    party.hold()
    return party


def _held(order: Checkout) -> Scene:
    return Scene(_held_party(order).views(*BEFORE_CAPTURE))


def _asked(order: Checkout) -> Scene:
    party = _held_party(order)
    fault_injection.set_fault(verb="capture", mode="done_then_reset", times=1)
    fault_injection.set_fault(verb="look_up", mode="down", times=1)
    with pytest.raises(captures.OutcomeUnknown):
        captures.capture(order.merchant, order.pk, cause=CAUSE)
    return Scene(party.views(*BEFORE_CAPTURE))


def _cancelled(order: Checkout) -> Scene:
    party = _collecting_party(order)
    cancellations.cancel(order.merchant, order.pk, cause=CAUSE)
    return Scene(party.views(*ENDED))


def _releasing(order: Checkout) -> Scene:
    party = _held_party(order)
    cancellations.cancel(order.merchant, order.pk, cause=CAUSE)
    return Scene(party.views(*ENDED))


def _released(order: Checkout) -> Scene:
    scene = _releasing(order)
    mates.pump(order.pk)
    return scene


def _expired(order: Checkout) -> Scene:
    party = _collecting_party(order)
    make_late(order)
    expiry.expire_one_if_due(order.pk)
    return Scene(party.views(*ENDED))


def _paid(order: Checkout) -> Scene:
    party = _captured(order)
    party.finn.pay()
    mates.pump(order.pk)
    party.end_shares()
    viewers = (*PAYERS_OF_SHARE, *VIEWERS_OF_SHARES)
    return _after_capture(party, *viewers, other=captured_without_mates(order))


def _reimbursed(order: Checkout) -> Scene:
    return _after_capture(_with_every_mate(order), *PAYERS_OF_SHARE)


def _claimed(order: Checkout) -> Scene:
    party = _with_every_mate(order)
    Guest(order).take(3)
    return _after_capture(party, V.HOLDER)


def _all_taken(order: Checkout) -> Scene:
    party = _with_every_mate(order)
    Guest(order).take(3)
    return _after_capture(party, V.GROUP_LINK)


def _all_paid(order: Checkout) -> Scene:
    party = Party(order)
    party.capture(name=["Finn"], amount=["20"])
    party.reimburse()
    return _after_capture(party, V.GROUP_LINK)


def _no_share_left(order: Checkout) -> Scene:
    party = _with_every_mate(order)
    amy = Mate(party.share(3))
    amy.sign_in("07700 900457")
    amy.give_card(mates.AMYS)
    assert mates.settled(amy.share) == "reimbursed"
    return _after_capture(party, V.GROUP_LINK)


def _not_asked(order: Checkout) -> Scene:
    party = _captured(order)
    for share in order.payment_requests.all():
        mate_shares.cancel(share.pk)
    return _after_capture(party, V.GROUP_LINK)


def _links_expired(order: Checkout) -> Scene:
    party = _captured(order)
    PaymentRequest.objects.update(expires_at=clock.now())
    return _after_capture(party, V.GROUP_LINK)


def _disputed(order: Checkout) -> Scene:
    party, other = _with_every_mate(order), captured_without_mates(order)
    for disputed in (party.order, other.checkout):
        dispute(disputed.payment, 1000)
    return _after_capture(party, *VIEWERS_OF_SHARES, other=other)


def _bank_returned(order: Checkout) -> Scene:
    """Return the pages after two lost disputes.

    One is about Finn's payment, which was not reimbursed yet. The other is about the payment of a lead
    without mates.
    """
    party, other = _captured(order), captured_without_mates(order)
    party.end_shares()
    party.finn.pay()
    mates.pump(order.pk)
    party.finn.share.refresh_from_db()
    for payment in (party.finn.share.payment, other.checkout.payment):
        decide(dispute(payment), is_won=False)
    viewers = (*PAYERS_OF_SHARE, *NOT_ASKED, V.GROUP_LINK)
    return _after_capture(party, *viewers, other=other)


def _refunded_outside(order: Checkout) -> Scene:
    party = _captured(order)
    party.end_shares()
    refund_outside(party.order.payment, 500)
    return _after_capture(party, *NOT_ASKED, V.GROUP_LINK)


def _refunding(order: Checkout) -> Scene:
    party = _with_every_mate(order)
    _refund(party.order)
    return Scene(party.views(V.LEAD, V.ORDER_LINK, *PAYERS_OF_SHARE, *VIEWERS_OF_SHARES))


def _refunded(order: Checkout) -> Scene:
    party = _with_every_mate(order)
    _refund(party.order)
    settle(party.order)
    return Scene(party.views(V.LEAD, V.ORDER_LINK, *PAYERS_OF_SHARE, *NOT_ASKED, V.GROUP_LINK))


def _refund_failed(order: Checkout) -> Scene:
    """Return the pages after the bank has refused two refunds: of a split order, and of an order without mates."""
    party, other = _with_every_mate(order), captured_without_mates(order)
    fault_injection.set_fault(verb="refund", mode="refund_card_closed", times=3)
    for refunded in (party.order, other.checkout):
        _refund(refunded)
        settle(refunded)
        assert refunded.status == "captured"
    viewers = (*PAYERS_OF_SHARE, *VIEWERS_OF_SHARES)
    return _after_capture(party, *viewers, other=other)


def _refund_returned(order: Checkout) -> Scene:
    """Return the pages after cards have returned two refunds: one to Finn, and one to a lead without mates."""
    party, other = _captured(order), captured_without_mates(order, RETURNS)
    party.finn.pay(RETURNS)
    assert mates.settled(party.finn.share) == "reimbursed"
    party.end_shares()
    for refunded in (party.order, other.checkout):
        _refund(refunded)
        settle(refunded)
    come_back()
    return Scene(_views_of_order(other) | party.views(*PAYERS_OF_SHARE, *NOT_ASKED, V.GROUP_LINK))


BUILDERS: dict[Situation, Callable[[Checkout], Scene]] = {
    S.UNPAID: _unpaid,
    S.COLLECTING: _collecting,
    S.PLEDGED: _pledged,
    S.PLEDGE_CHECKED: _pledge_checked,
    S.STOPPED: _stopped,
    S.ALL_IN: _all_in,
    S.SUSPENDED: _suspended,
    S.CONFIRM: _confirm,
    S.CHECKING: _checking,
    S.SILENT: _silent,
    S.TAKING: _taking,
    S.TAKING_SILENT: _taking_silent,
    S.HELD: _held,
    S.ASKED: _asked,
    S.CANCELLED: _cancelled,
    S.RELEASING: _releasing,
    S.RELEASED: _released,
    S.EXPIRED: _expired,
    S.PAID: _paid,
    S.REIMBURSED: _reimbursed,
    S.CLAIMED: _claimed,
    S.ALL_TAKEN: _all_taken,
    S.ALL_PAID: _all_paid,
    S.NO_SHARE_LEFT: _no_share_left,
    S.NOT_ASKED: _not_asked,
    S.LINKS_EXPIRED: _links_expired,
    S.DISPUTED: _disputed,
    S.BANK_RETURNED: _bank_returned,
    S.REFUNDED_OUTSIDE: _refunded_outside,
    S.REFUNDING: _refunding,
    S.REFUND_FAILED: _refund_failed,
    S.REFUNDED: _refunded,
    S.REFUND_RETURNED: _refund_returned,
}
