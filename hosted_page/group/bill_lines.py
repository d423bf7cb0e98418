"""Builds the lines of the lead's bill: each person's name and amount, and a text about the state of the share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from checkout import pledges, settling
from checkout.group import share_changes
from checkout.models import Checkout, PaymentRequest
from checkout.settling import amounts_owed
from checkout.settling.cards import NOT_CARRIED_OUT, REFUSED, Accounts
from checkout.states import SHARE_PAID, ShareStatus, Status
from config.lib import clock
from hosted_page import ended_pledges, summary
from hosted_page.group import group_members, line_looks
from hosted_page.group.dispute_returns import ReturnedMoney
from hosted_page.group.line_looks import (
    CLAIMED_LOOK,
    LOOK_AFTER_LOST_DISPUTE,
    LOOK_BY_STATUS,
    PAUSED_LOOK,
    RETURNED_LOOK,
)
from hosted_page.models import SmsMessage
from hosted_page.payment_target import PaymentTarget
from hosted_page.sms import invitations
from hosted_page.steps.phone import mask_number
from payments import money
from payments.models import Dispute, Operation


@dataclass(frozen=True)
class SmsError:
    """The reason why a share's link was not sent, and the number that the lead typed.

    If a limit is the reason (`is_limit`), the number can be valid.
    """

    share_id: str
    phone: str
    error: str
    is_limit: bool = False


@dataclass(frozen=True)
class OutsideEvents:
    """Disputes, and refunds made directly at the provider, that moved an order's money.

    - `disputed`: the status of the order's open or lost dispute, or "" if there is none
    - `back`: texts about the money that lost disputes returned to payers, or None if no dispute is lost
    - `accounts`: the accounts of the order's cards. It is None if the statuses of the shares already say where
      the money is.
    """

    disputed: str = ""
    back: ReturnedMoney | None = None
    accounts: Accounts | None = None

    @property
    def is_own_back(self) -> bool:
        """Whether the lead's own bank has returned money."""
        return self.back is not None and self.back.own != ""

    @property
    def returned_to_mates(self) -> int:
        """Amount of the mates' paid shares that banks have returned, in minor units."""
        return self.back.from_mates if self.back else 0

    @property
    def outside(self) -> int:
        """Amount that was refunded to the lead's card directly at the provider, in minor units."""
        lead = self.accounts.lead if self.accounts else None
        return lead.outside if lead else 0


@dataclass(frozen=True)
class Line:
    """One person's line on the bill.

    - `person`: the number of the person's colour
    - `items`: a text with the units of the share, or "" if the cost is not split by item
    - `spoken`: the sentence that a screen reader says when the line changes to this state
    - `seen`: a text that changes whenever the line's content changes
    - `url`: the pay link, or "" if the share cannot be paid now
    - `sent_to`: the masked number to which the link is texted
    - `remind_from`: when the next reminder can be sent, or "" if it can be sent now
    - `is_waiting`: the text message to the mate is queued and not sent yet
    - `went`: what happened to a reimbursement that is not on the lead's card: "back" if the card returned it,
      "owed" if it is owed again, "otherwise" if it was paid another way. For all other lines, it is "".
    - `disputed`: the status of the order's open or lost dispute, or "" if there is none. During a dispute, no
      mate is asked to pay.
    - `may_change`: the mate declined, but can still reopen the share and pay
    - `is_over`: no mate is asked to pay any more, because some of the order was refunded directly at the
      provider
    - `is_stopped`: an operator has stopped the shop, so no mate can pay now
    - `was_not_taken`: the mate's hold could not be captured, so the share is open again
    - `is_being_taken`: the mate's hold is being captured, so the mate has no step left to take
    """

    id: str
    name: str
    initial: str
    amount: str
    person: int
    items: str = ""
    status: str = ""
    look: str = "mine"
    tone: str = ""
    icon: str = ""
    words: str | Promise = ""
    hint: str = ""
    spoken: str = ""
    seen: str = ""
    typed_name: str = ""
    url: str = ""
    qr_url: str = ""
    sent_to: str = ""
    remind_from: str = ""
    is_waiting: bool = False
    went: str = ""
    disputed: str = ""
    may_change: bool = False
    is_over: bool = False
    is_stopped: bool = False
    was_not_taken: bool = False
    is_being_taken: bool = False
    wrong: SmsError | None = None

    @property
    def is_lead(self) -> bool:
        """Whether this is the lead's own line."""
        return not self.status

    @property
    def may_be_asked_again(self) -> bool:
        """Whether the lead can now ask again for the share, which was declined or cancelled."""
        has_ended = self.status in (ShareStatus.DECLINED, ShareStatus.CANCELLED)
        return has_ended and not (self.disputed or self.is_over or self.is_stopped)

    @property
    def may_be_kept(self) -> bool:
        """Whether the lead can choose to cover the share, so that the mate no longer pays it."""
        return self.status in (ShareStatus.OPEN, ShareStatus.DECLINED)

    @property
    def may_be_renamed(self) -> bool:
        """Whether the lead can change the name of the share."""
        return self.status in share_changes.RENAMABLE_STATUSES

    @property
    def has_more(self) -> bool:
        """Whether the lead can ask for the share again or cover it."""
        return self.may_be_asked_again or self.may_be_kept

    def with_returned_reimbursement(self) -> "Line":
        """Return the line for a share whose reimbursement the lead's card returned.

        A screen reader still says that the mate has paid.
        """
        tone, icon, words = RETURNED_LOOK
        line = replace(
            self, tone=tone, icon=icon, words=words, hint=_("the money is sent again, or paid another way")
        )
        spoken = line_looks.describe_aloud(ShareStatus.PAID, self.name, self.amount)
        return replace(line, spoken=spoken, seen=f"{self.seen} back", went="back")

    def with_failed_capture(self, *, is_explained: bool) -> "Line":
        """Return the line for an open share whose pledge could not be captured.

        With `is_explained`, the notice above the lines says why.
        """
        words_of_failure = _("{name}’s card could not be charged. The share is open again.").format(
            name=self.name
        )
        hint = _("The share is open again.") if is_explained else words_of_failure
        look, tone, icon, words = LOOK_BY_STATUS[ShareStatus.OPEN]
        line = replace(self, look=look, tone=tone, icon=icon, words=words, was_not_taken=True)
        return replace(line, hint=hint, spoken=words_of_failure, seen=f"{self.seen} not taken")

    def with_open_capture(self) -> "Line":
        """Return the line for a share whose pledge is being captured."""
        seen = f"{self.seen} being taken"
        return replace(self, words=line_looks.BEING_TAKEN, is_being_taken=True, spoken="", seen=seen)

    def with_missing_reimbursement(self, *, is_owed: bool) -> "Line":
        """Return the line for a `reimbursed` share of which some money did not reach the lead's card.

        If `is_owed` is true, the missing amount is still owed to the lead. Otherwise, it was paid another
        way.
        """
        words = LOOK_BY_STATUS[ShareStatus.PAID][-1] if is_owed else _("Paid back another way")
        hint = _("the money is sent again, or paid another way") if is_owed else ""
        went = "owed" if is_owed else "otherwise"
        spoken = line_looks.describe_aloud(ShareStatus.PAID, self.name, self.amount)
        seen = f"{self.seen} {went}"
        return replace(self, icon="check", words=words, hint=hint, spoken=spoken, seen=seen, went=went)

    def with_current_state(self, queued_phone: str, events: OutsideEvents) -> "Line":
        """Return the line with the state of the queued text message and of the order's dispute.

        During a dispute, the line offers no link. `queued_phone` is the number to which a queued text message will be
        sent, or "" if no message is queued.
        """
        disputed = events.disputed
        seen = f"{self.seen} {bool(queued_phone)} {disputed}"
        if not disputed:
            sent_to = mask_number(queued_phone) or self.sent_to
            return replace(self, is_waiting=bool(queued_phone), sent_to=sent_to, seen=seen)
        line = replace(self, disputed=disputed, seen=seen, url="", qr_url="", sent_to="")
        if disputed == Dispute.Status.OPEN and self.status == ShareStatus.OPEN:
            return line._paused()
        match disputed, self.status:
            case Dispute.Status.OPEN, ShareStatus.PAID:
                return replace(line, hint=_("waits for the bank"))
            case Dispute.Status.LOST, status if events.is_own_back and status in LOOK_AFTER_LOST_DISPUTE:
                look, tone, icon, words = LOOK_AFTER_LOST_DISPUTE[status]
                hint = self.hint if status in SHARE_PAID else ""
                if status == ShareStatus.REIMBURSED:
                    hint = line_looks.hint_after_lost_dispute(self.hint)
                return replace(line, look=look, tone=tone, icon=icon, words=words, hint=hint)
        return line

    def stopped(self) -> "Line":
        """Return the line for a stopped shop, without the actions that ask the mate."""
        seen = f"{self.seen} stopped"
        line = replace(self, is_stopped=True, seen=seen, url="", qr_url="", sent_to="")
        return line._paused() if self.status == ShareStatus.OPEN else line

    def _paused(self) -> "Line":
        icon, words = PAUSED_LOOK
        return replace(self, tone="still", icon=icon, words=words, hint="")


def lines_of(
    checkout: Checkout,
    shares: Sequence[PaymentRequest],
    now: datetime,
    sms_error: SmsError | None = None,
    events: OutsideEvents = OutsideEvents(),
) -> list[Line]:
    """Return a line for the lead and one for each share. `sms_error` is shown on the line of its share."""
    own = checkout.amount - sum(share.amount for share in shares)
    name = (checkout.lead.name if checkout.lead else "") or _("You")
    lead = Line("lead", name, name[:1].upper(), money.display_for_payer(own, checkout.currency), 1)
    reimbursements, phones = _last_reimbursements(shares), queued_texts(checkout, shares, now)
    lines = [_share_line(checkout, share, now, reimbursements.get(share.pk), sms_error) for share in shares]
    lines = _with_captures(checkout, shares, lines)
    lines = [line.with_current_state(phones.get(line.id, ""), events) for line in lines]
    if events.accounts is not None:
        is_over = settling.is_refunded_by_others(checkout)
        lines = [replace(line, is_over=is_over) for line in lines]
        lines = [
            _correct_for_money(line, share, events.accounts)
            for line, share in zip(lines, shares, strict=True)
        ]
    return [lead, *lines]


def _with_captures(checkout: Checkout, shares: Sequence[PaymentRequest], lines: Sequence[Line]) -> list[Line]:
    """Return the lines. Correct those of pledges that are being captured or could not be captured."""
    not_taken = {str(pk) for pk in ended_pledges.shares_not_taken(shares)}
    being_taken = {str(pk) for pk in pledges.shares_being_taken(checkout, shares)}
    lines = [line.with_open_capture() if line.id in being_taken else line for line in lines]
    # The bill explains only the first of these shares, and only if no mate has declined.
    has_notice = all(line.status != ShareStatus.DECLINED for line in lines)
    first = next((line.id for line in lines if line.id in not_taken), "") if has_notice else ""
    return [
        line.with_failed_capture(is_explained=line.id == first) if line.id in not_taken else line
        for line in lines
    ]


def _correct_for_money(line: Line, share: PaymentRequest, accounts: Accounts) -> Line:
    """Return the line. Correct it if the share's status does not show where the share's money is."""
    part, is_owed = accounts.reimbursement(share)[1], accounts.owed_to_lead(share) > 0
    if share.status not in SHARE_PAID or not (is_owed or part.settled):
        return line
    if part.returned and is_owed:
        return line.with_returned_reimbursement()
    if share.status == ShareStatus.REIMBURSED:
        return line.with_missing_reimbursement(is_owed=is_owed)
    return line


def queued_texts(checkout: Checkout, shares: Sequence[PaymentRequest], now: datetime) -> dict[str, str]:
    """Map the id of each share to the phone number of its queued text message. Other shares are left out."""
    texted = [share.pk for share in shares if share.next_reminder_at and share.next_reminder_at > now]
    if not texted:
        return {}
    messages = SmsMessage.objects.filter(checkout_uuid=checkout.pk, subject__in=texted, ended_at=None)
    rows = messages.filter(kind__in=invitations.TO_MATES).values_list("subject", "phone")
    return {str(subject): phone or "" for subject, phone in rows}


def _last_reimbursements(shares: Sequence[PaymentRequest]) -> dict[UUID | None, Operation]:
    """Map the id of each paid share to its last reimbursement."""
    paid = [share.pk for share in shares if share.status in SHARE_PAID]
    if not paid:
        return {}
    rows = Operation.objects.filter(share_uuid__in=paid).exclude(reason__in=NOT_CARRIED_OUT)
    rows = rows.only("share_uuid", "state", "next_attempt_at", "ended_at")
    return {row.share_uuid: row for row in rows.order_by("created_at")}  # a later row replaces an earlier one


def _share_line(
    checkout: Checkout,
    share: PaymentRequest,
    now: datetime,
    reimbursement: Operation | None,
    sms_error: SmsError | None,
) -> Line:
    claimed_until = share.claimed_until if share.status == ShareStatus.OPEN and share.is_kept(now) else None
    name, amount = group_members.name_of(share), money.display_for_payer(share.amount, checkout.currency)
    return Line(
        id=str(share.pk),
        name=name,
        amount=amount,
        **group_members.look_of_person(checkout, share),
        status=share.status,
        **_look_fields(checkout, share, is_claimed=claimed_until is not None),
        hint=_claim_hint(checkout, share) if claimed_until else _hint_of_line(checkout, share, reimbursement),
        spoken=line_looks.describe_aloud(share.status, name, amount),
        seen=f"{share.status} {share.token_digest[:8]} {share.next_reminder_at} {name} {claimed_until}"
        f" {amount} {share.units}",
        typed_name=share.name,
        may_change=share_changes.may_reconsider(share, now),
        wrong=sms_error if sms_error and sms_error.share_id == str(share.pk) else None,
        **(_link_fields(checkout, share) if share.status == ShareStatus.OPEN else {}),
    )


def _look_fields(checkout: Checkout, share: PaymentRequest, *, is_claimed: bool) -> dict[str, Any]:
    # While the shop is checking the order, no open link accepts a payment.
    is_waiting = share.status == ShareStatus.OPEN and checkout.status == Status.AUTHORIZED
    by_status = LOOK_BY_STATUS[ShareStatus.DRAFT if is_waiting else share.status]
    return dict(
        zip(("look", "tone", "icon", "words"), CLAIMED_LOOK if is_claimed else by_status, strict=True)
    )


def _link_fields(checkout: Checkout, share: PaymentRequest) -> dict[str, Any]:
    """Return the fields of a line that describe the share's open link."""
    target, next_reminder_at = PaymentTarget(checkout, share), share.next_reminder_at
    return {
        "url": target.absolute(),
        "qr_url": target.address("qr"),
        "sent_to": mask_number(share.phone),
        "remind_from": summary.day_with_time(next_reminder_at, checkout)
        if next_reminder_at and next_reminder_at > clock.now()
        else "",
    }


def _hint_of_line(checkout: Checkout, share: PaymentRequest, reimbursement: Operation | None) -> str:
    """Return the hint next to the badge: when the state was reached, or what happens next."""
    match share.status:
        case ShareStatus.PAID:
            if reimbursement and reimbursement.state in REFUSED:
                return _("the money is sent again, or paid another way")
            due_at = (
                reimbursement.next_attempt_at
                if reimbursement
                else amounts_owed.reimbursement_due_at(share.paid_at or clock.now())
            )
            if due_at is None or due_at <= clock.now():
                return _("on its way to your card")
            return format_html(_("goes back by {time}"), time=summary.day_with_time(due_at, checkout))
        case ShareStatus.REIMBURSED:
            if reimbursement is None or reimbursement.state != Operation.State.SUCCEEDED:
                return ""
            return _format_moment(reimbursement.ended_at, checkout) if reimbursement.ended_at else ""
        case ShareStatus.DECLINED:
            declined_at = _format_moment(share.ended_at, checkout) if share.ended_at else ""
            return format_html(_("{time}, you cover it"), time=declined_at)
        case ShareStatus.EXPIRED:
            return _("you cover it")
        case _:
            return ""


def _claim_hint(checkout: Checkout, share: PaymentRequest) -> str:
    """Return the hint that says until when a claimed share is reserved."""
    until = share.claimed_until
    return format_html(_("kept until {time}"), time=_format_moment(until, checkout)) if until else ""


def _format_moment(at: datetime, checkout: Checkout) -> SafeString:
    """Return a time as HTML: only the time of day if the day is today, otherwise also the date."""
    zone = summary.zone_of(checkout)
    local = at.astimezone(zone)
    if local.date() != clock.now().astimezone(zone).date():
        return summary.day_with_time(at, checkout)
    return summary.short_time(at, zone)
