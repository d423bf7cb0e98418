"""Builds the bill of a split order as the lead sees it: the amount that each person bears, and the totals.

Rule share.borne.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import current_checkouts, mate_shares, refunds, settling
from checkout.current_checkouts import Split
from checkout.group import late_mates
from checkout.models import Checkout, PaymentRequest
from checkout.states import SHARE_OUTSTANDING, SHARE_PAID, ShareStatus, Status
from hosted_page import link_deadline, summary
from hosted_page.group import bill_bar, bill_lines, collapsed_lines, dispute_returns, last_day
from hosted_page.group.bill_lines import Line, OutsideEvents, SmsError
from hosted_page.group.collapsed_lines import CollapsedLine
from hosted_page.group.dispute_returns import ReturnedMoney
from hosted_page.group.last_day import LastDay
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.table import cell_of
from payments import disputes, money, operator_stops
from payments.models import Dispute

# After this time, the lead reads that the bank has not answered about a pledge.
LATE_ANSWER = timedelta(hours=1)


@dataclass(frozen=True)
class Bill:
    """The bill that the page shows.

    - `bill_digest`: a digest of the bill's state. An open page uses it to see whether the bill has changed.
    - `said_no`: the line of the declined share that the page asks the lead about, or None if there is no such share
    - `not_taken`: the line of a share whose pledge could not be captured, or None if there is no such share
    - `disputed`: the status of the order's open or lost dispute, or "" if there is none. During a dispute, no
      mate is asked to pay.
    - `given_back`: texts about the money that lost disputes returned, or None if no dispute is lost
    - `may_add`: the largest amount that the lead can ask one more mate for, or "" if the lead cannot ask
    - `came_back`: the amount that the mates have paid, if all of it is already on the lead's card. If more is to
      come, it is "".
    - `failed_refund`: the sentences about a refund that has failed, "" if there is none
    """

    bears: str
    note: str
    sentence: str
    parts: list[bill_bar.Part]
    sums: list[dict[str, str]]
    lines: list[Line]
    folds: list[CollapsedLine]
    total: str
    until: str
    seen: str
    said_no: Line | None
    not_taken: Line | None
    last_day: LastDay | None
    disputed: str
    given_back: ReturnedMoney | None
    failed_refund: str
    may_add: str
    came_back: str
    shares: Sequence[PaymentRequest]

    @property
    def is_live(self) -> bool:
        """Whether the bill can still change.

        It can change while a share is open, a paid share is not reimbursed yet, a dispute is open, or the shop is
        stopped. Rule bill.live.
        """
        is_open = any(share.status in (*SHARE_OUTSTANDING, ShareStatus.PAID) for share in self.shares)
        return is_open or self.is_paused or self.is_stopped

    @property
    def is_paused(self) -> bool:
        """Whether a dispute is open. If so, pay links and reimbursements are paused until the bank decides."""
        return self.disputed == Dispute.Status.OPEN

    @property
    def is_stopped(self) -> bool:
        """Whether a stop of the shop prevents payments of open shares, or of shares that could be asked for again."""
        return any(line.is_stopped for line in self.lines)

    @property
    def is_given_back(self) -> bool:
        """Whether a dispute was lost, so that a bank has returned a payment for the order to a payer."""
        return self.given_back is not None

    @property
    def own_back(self) -> str:
        """Amount that the lead's own bank returned to the lead, or "" if it returned no money.

        After such a return, the service no longer knows how much each person bears.
        """
        return self.given_back.own if self.given_back else ""

    @property
    def is_owed(self) -> bool:
        """Whether a paid share is not yet reimbursed to the lead's card."""
        return any(share.status == ShareStatus.PAID for share in self.shares)

    @property
    def heading(self) -> str:
        """Title of the page, with the amount that the lead bears, or the amount that the lead's bank has returned."""
        if self.own_back:
            return _("Your bank gave you {amount} back").format(amount=self.own_back)
        words = _("You’re covering {amount} for now") if self.is_for_now else _("You’re covering {amount}")
        if self.is_settled:
            words = _("You’re covering {amount}, your own share")
        return words.format(amount=self.bears)

    @property
    def is_asking(self) -> bool:
        """Whether any mate is still asked for a share. A share that is being taken is not asked for any more."""
        return any(line.status in SHARE_OUTSTANDING and not line.is_being_taken for line in self.lines)

    @property
    def is_settled(self) -> bool:
        """Whether all mates have paid."""
        return all(share.status in SHARE_PAID for share in self.shares)

    @property
    def is_for_now(self) -> bool:
        """Whether the lead's amount can still decrease, because a mate can pay or a paid share is not reimbursed
        yet.
        """
        return not self.is_given_back and not _expects_no_payment(self.shares)

    @property
    def badge(self) -> str:
        return _("Everyone has paid") if self.is_settled else _("Confirmed and paid")

    @property
    def is_large(self) -> bool:
        """Whether the bar has too many parts to show letters."""
        return len(self.lines) >= bill_bar.NO_LETTERS_FROM


def bill_of(checkout: Checkout, *, error: SmsError | None = None, known_no: str | None = None) -> Bill | None:
    """Return the bill of an order, or None if the order is not split.

    The order must have been read with `with_read_at`. Shares that are past their deadline are ended first
    (rule share.ends). `error` is the error of a text message, which the page shows next to its share.

    For a new page, `known_no` is None. For an open page, it is the id of the declined share that the page
    asks about, or "". On an open page, a newer decline is only a note under the badge, so that the lines do
    not move.
    """
    now = current_checkouts.read_at(checkout)
    if not (shares := _shares_of(checkout, now)):
        return None
    events = _outside_events(checkout, shares)
    disputed, borne = events.disputed, _amounts_borne(checkout, shares, events.outside)
    all_lines = _lines_of(checkout, shares, now, error, events)
    is_paused = disputed or any(line.is_stopped for line in all_lines)
    declined = next(_declined_lines(all_lines), None) if known_no is None and not is_paused else None
    return Bill(
        bears=money.display_for_payer(borne.bears, checkout.currency),
        note="" if disputed else _note_of_bill(checkout, all_lines, known_no, events.outside),
        sentence="" if declined or known_no else _mates_money_sentence(checkout, all_lines, borne, events),
        parts=bill_bar.parts_of(checkout, shares, all_lines, events.returned_to_mates),
        sums=bill_bar.labelled_sums(borne, events, checkout.currency),
        lines=all_lines,
        folds=_folds_of(checkout, shares, all_lines),
        total=money.display_for_payer(checkout.amount, checkout.currency),
        seen=bill_digest(checkout, shares, now, disputed),
        said_no=declined,
        disputed=disputed,
        given_back=events.back,
        **_offers_and_reports(checkout, shares, now, all_lines, events),
        shares=shares,
    )


def _lines_of(
    checkout: Checkout,
    shares: Sequence[PaymentRequest],
    now: datetime,
    error: SmsError | None,
    events: OutsideEvents,
) -> list[Line]:
    """Return the lines of the bill. While the shop is stopped, they have no actions that ask a mate."""
    lines = bill_lines.lines_of(checkout, shares, now, error, events)
    is_due = any(line.status in SHARE_OUTSTANDING or line.may_be_asked_again for line in lines)
    if events.disputed or not is_due or checkout.status != Status.CAPTURED:
        return lines
    return [line.stopped() for line in lines] if operator_stops.is_stopped(checkout.merchant_id) else lines


def _shares_of(checkout: Checkout, now: datetime) -> list[PaymentRequest]:
    """End the shares that are past their deadline, and return all shares."""
    shares = current_checkouts.shares_of(checkout)
    return (
        current_checkouts.shares_of(checkout)
        if mate_shares.expire_all_late(checkout, shares, now)
        else shares
    )


def _outside_events(checkout: Checkout, shares: Sequence[PaymentRequest]) -> OutsideEvents:
    """Return the disputes, and the refunds made directly at the provider, that moved the order's money."""
    accounts = settling.read_accounts_unlocked(checkout)
    dispute = disputes.blocking_dispute_of_row(checkout) if checkout.status == Status.CAPTURED else None
    if dispute is None:
        return OutsideEvents(accounts=accounts)
    is_lost = dispute.status == Dispute.Status.LOST
    returned = dispute_returns.returned_money(checkout, shares, dispute, accounts) if is_lost else None
    return OutsideEvents(dispute.status, returned, accounts)


def _amounts_borne(checkout: Checkout, shares: Sequence[PaymentRequest], outside: int) -> Split:
    """Return the amounts that the lead and the mates bear.

    The lead's amount excludes refunds to the lead's card that were made directly at the provider.
    """
    borne = current_checkouts.split_of(checkout, shares)
    return borne._replace(yours=max(0, borne.yours - outside))


def _amount_that_came_back(
    checkout: Checkout, shares: Sequence[PaymentRequest], events: OutsideEvents
) -> str:
    """Return the amount that the mates paid, if all of it is already on the lead's card.

    Return "" if more money is still to come, or if a dispute or a direct refund moved some of the money.
    """
    reimbursed = sum(share.amount for share in shares if share.status == ShareStatus.REIMBURSED)
    is_over = _expects_no_payment(shares) and not events.disputed and events.accounts is None
    return money.display_for_payer(reimbursed, checkout.currency) if reimbursed and is_over else ""


def _expects_no_payment(shares: Sequence[PaymentRequest]) -> bool:
    """Return whether every share is reimbursed to the lead's card, cancelled or expired."""
    ended = (ShareStatus.REIMBURSED, ShareStatus.CANCELLED, ShareStatus.EXPIRED)
    return all(share.status in ended for share in shares)


def bill_digest(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime, disputed: str) -> str:
    """Return a digest of everything on the bill that can change.

    An open page sends the digest that it has, so that the service can see whether the bill has changed.
    """
    is_stopped = operator_stops.is_stopped(checkout.merchant_id)
    facts: list[Any] = [checkout.updated_at, disputed, is_stopped]
    facts += sorted(bill_lines.queued_texts(checkout, shares, now))
    for share in shares:
        facts += (share.status, share.token_digest, share.expires_at, share.next_reminder_at)
        facts += (share.shown_name, share.claimed_until if share.is_kept(now) else None)
    return hashlib.blake2b(repr(facts).encode(), digest_size=12).hexdigest()


def _folds_of(
    checkout: Checkout, shares: Sequence[PaymentRequest], all_lines: list[bill_lines.Line]
) -> list[collapsed_lines.CollapsedLine]:
    is_long = len(all_lines) >= bill_bar.NO_LETTERS_FROM
    return collapsed_lines.collapse(checkout, shares, all_lines) if is_long else []


def _declined_lines(all_lines: Sequence[Line]) -> Iterator[Line]:
    return (line for line in all_lines if line.status == ShareStatus.DECLINED)


def _note_of_bill(checkout: Checkout, all_lines: Sequence[Line], known_no: str | None, outside: int) -> str:
    newly_declined = [line for line in _declined_lines(all_lines) if line.id != known_no]
    if known_no is not None and newly_declined:
        return _("{name} said no.").format(name=newly_declined[-1].name)
    if outside:
        return ""
    whole = money.display_for_payer(checkout.amount, checkout.currency)
    return _("{shop} has the whole {amount}.").format(shop=checkout.merchant.name, amount=whole)


def _offers_and_reports(
    checkout: Checkout,
    shares: Sequence[PaymentRequest],
    now: datetime,
    lines: Sequence[Line],
    events: OutsideEvents,
) -> dict[str, Any]:
    """Return the bill's fields about the end of the links, a late mate, a failed refund, and returned money."""
    disputed, is_stopped = events.disputed, any(line.is_stopped for line in lines)
    is_paused = disputed or is_stopped
    end_of_links = summary.day_with_time(link_deadline.ends_at(shares), checkout)
    return {
        "not_taken": None if is_paused else next((line for line in lines if line.was_not_taken), None),
        "last_day": None if is_paused else last_day.last_day_offer(checkout, shares, lines, now),
        "until": "" if disputed or checkout.status != Status.CAPTURED else end_of_links,
        "may_add": "" if is_stopped else _amount_for_late_mate(checkout, shares, now),
        "failed_refund": "" if disputed else _failed_refund_sentence(checkout),
        "came_back": _amount_that_came_back(checkout, shares, events),
    }


def _amount_for_late_mate(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime) -> str:
    if not late_mates.can_add(checkout, shares, now):
        return ""
    return money.display_for_payer(late_mates.own_part(checkout, shares), checkout.currency)


def _failed_refund_sentence(checkout: Checkout) -> str:
    """Return the sentences about a failed refund of the order, "" if no refund has failed."""
    if not refunds.has_failed(checkout):
        return ""
    amount = money.display_for_payer(checkout.amount, checkout.currency)
    cell = cell_of(Situation.REFUND_FAILED, Viewer.LEAD)
    return SafeString(" ".join(cell.paragraphs({"shop": checkout.merchant.name, "amount": amount})))


def _mates_money_sentence(
    checkout: Checkout, all_lines: Sequence[Line], borne: Split, events: OutsideEvents
) -> str:
    """Return the sentence about the order's lost or open dispute.

    If there is no dispute, return the sentence that says where the mates' money goes.
    """
    if events.back:
        return events.back.words
    if events.disputed == Dispute.Status.OPEN:
        has_paid = any(line.status in SHARE_PAID for line in all_lines)
        return dispute_returns.review_sentence(checkout, has_mate_paid=has_paid)
    sent_back = [line for line in all_lines if line.went == "back"]
    if not borne.out and sent_back and events.accounts is not None:
        return dispute_returns.sent_back_sentence(events.accounts, {line.id for line in sent_back})
    due = [line for line in all_lines if line.status in SHARE_OUTSTANDING]
    if due and all(line.is_being_taken for line in due):
        return _being_taken_sentence(checkout, len(due))
    return _reimbursement_sentence(checkout, all_lines, borne)


def _being_taken_sentence(checkout: Checkout, count: int) -> str:
    """Return the sentence for a lead whose mates have no step left to take. `count` is the number of their shares."""
    now = current_checkouts.read_at(checkout)
    if checkout.captured_at and now - checkout.captured_at > LATE_ANSWER:
        return ngettext(
            "The bank has not answered about your mate’s share yet. We keep asking. You don’t need to do anything.",
            "The bank has not answered about your mates’ shares yet. We keep asking. You don’t need to do anything.",
            count,
        )
    words = ngettext(
        "We are taking your mate’s share. It goes back to {card}.",
        "We are taking your mates’ shares. Each share goes back to {card}.",
        count,
    )
    return words.format(card=summary.card_in_words(checkout.payment, is_owner=True))


def _reimbursement_sentence(checkout: Checkout, all_lines: Sequence[Line], borne: Split) -> str:
    """Return the sentence that says where the mates' money is, or where it will go."""
    card = summary.card_in_words(checkout.payment, is_owner=True)
    covers_others = any(line.look == "mine" and not line.is_lead for line in all_lines)
    if borne.out and borne.yours and not covers_others:
        words = _("Your own share is {yours}. When a mate pays, their share goes back to {card}.")
    elif borne.out:
        words = _("When a mate pays, their share goes back to {card}.")
    elif any(line.status == ShareStatus.PAID or line.went == "owed" for line in all_lines):
        words = _("Your mates’ payments go back to {card}.")
    elif any(line.went for line in all_lines):
        return ""  # the lines of these shares already say where the money went
    elif borne.paid:
        words = _("Your mates’ payments are back on {card}.")
    elif any(line.status == ShareStatus.EXPIRED for line in all_lines):
        words = _("No mate paid a share, so this amount stays on {card}.")
    else:
        words = _("No mate is paying a share, so this amount stays on {card}.")
    return words.format(card=card, yours=money.display_for_payer(borne.yours, checkout.currency))
