"""Writes the notice at the top of the group page, which says what has just happened to a share."""

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _

from checkout import current_checkouts, pledges
from checkout.group import share_changes
from checkout.models import PaymentRequest
from checkout.states import ShareStatus, Status
from hosted_page import ended_pledges, payer
from hosted_page.group import group_members, group_situation
from hosted_page.group.group_members import GroupBill, Person
from hosted_page.group.group_order import Group, TakeRefusal
from hosted_page.payment_target import SIGN_IN
from hosted_page.status.cells import Situation
from payments.models import Payment


def page_notice(
    request: HttpRequest, group: Group, bill: GroupBill, refusal: TakeRefusal
) -> dict[str, str] | None:
    """Return the notice at the top of the page, or None if there is no notice.

    The notice says why no share was taken, or that this person has just released or declined a share. After the end of
    this person's pledge, it says that the hold is released.
    """
    share = bill.at(refusal.position) if refusal.kind == "taken" else None
    if refusal.kind in ("limit", "items"):
        title = refusal.title or _("No more shares for now")
        return {"tone": "stop", "icon": "alert", "title": title, "words": refusal.words}
    if share is not None and share.state == group_members.LEAD:
        return _not_asked_notice(group, bill)
    if share is not None and share.state != group_members.FREE and not share.is_mine:
        return _taken_notice(group, bill, share)
    return _own_notice(request, group, bill)


def _own_notice(request: HttpRequest, group: Group, bill: GroupBill) -> dict[str, str] | None:
    """Return the notice about this person's last action, or about their pledge if it has ended."""
    shares = {name: bill.at(parse_number(request.GET.get(name, ""))) for name in ("taken", "left")}
    if shares["taken"] is not None and not shares["taken"].is_mine:
        return _ended_pledge_notice(request, group, bill) or _not_claimed_notice(group, bill, shares["taken"])
    if shares["left"] is not None and shares["left"].state == group_members.FREE:
        title = _("You have not been charged")
        words = _("{share} is free again.").format(share=shares["left"].of_whom)
        return {"tone": "still", "icon": "check", "title": title, "words": words}
    return _ended_pledge_notice(request, group, bill) or _declined_notice(request, group)


def _declined_notice(request: HttpRequest, group: Group) -> dict[str, str] | None:
    """Return the notice for a person who declined a share in this browser and can still reopen it.

    The notice links to the page of the share, where the person can reopen the share.
    """
    claim, now = payer.claim_of(request), current_checkouts.read_at(group.checkout)
    declined = group.checkout.payment_requests.filter(status=ShareStatus.DECLINED, claim_digest=claim)
    share = declined.first() if claim else None
    if share is None or not share_changes.may_reconsider(share, now):
        return None
    if not share_changes.can_mates_pay(group.checkout):
        return None
    sentence = _("You have not been charged. {name} can see that you said no.").format(name=group.name)
    link = format_html(
        '<a class="link" href="{}">{}</a>', group.share_path(share.position), _("I’ve changed my mind")
    )
    words = format_html("{} {}", sentence, link)
    return {"tone": "still", "icon": "check", "title": _("You said no"), "words": words}


def _not_claimed_notice(group: Group, bill: GroupBill, share: Person) -> dict[str, str] | None:
    """Return the notice for a person who was redirected from a share that they have not claimed.

    If the share is paid, the notice offers a sign-in, because the person might have paid in another browser.
    """
    if share.was_paid:
        sign_in = f"{group.share_path(share.position)}?{SIGN_IN}=1"
        question = _("Did you pay this? Sign in to see your receipt")
        words = format_html('<a class="link" href="{}">{}</a>', sign_in, question)
        if share.state == group_members.PAID:
            title = _("{share} is paid").format(share=share.of_whom)
            return {"tone": "done", "icon": "check", "title": title, "words": words}
        # The share was paid and then refunded. Only the payer and the shop may know this, so the title does
        # not say it.
        title = _("Share {number}").format(number=share.position)
        return {"tone": "still", "icon": "check", "title": title, "words": words}
    if share.state == group_members.LEAD:
        return _not_asked_notice(group, bill)
    return _taken_notice(group, bill, share) if share.state == group_members.TAKEN else None


def _not_asked_notice(group: Group, bill: GroupBill) -> dict[str, str] | None:
    """Return the notice about a share that the lead covers.

    Return None if the page already says that no share is free.
    """
    if not _is_open(group, bill):
        return None
    title = _("{name} is no longer asking for this").format(name=group.name)
    return {"tone": "still", "icon": "check", "title": title, "words": _("You have not been charged.")}


def _ended_pledge_notice(request: HttpRequest, group: Group, bill: GroupBill) -> dict[str, str] | None:
    """Return the notice for a mate whose pledge has ended, or None for anyone else.

    After the capture, there is a notice only for a pledge that could not be captured.
    """
    if group.checkout.status not in (Status.CREATED, Status.CAPTURED):
        return None
    is_paid = group.checkout.status == Status.CAPTURED
    pledged = PaymentRequest.every.filter(checkout=group.checkout, mate__isnull=False)
    pledged = pledged.filter(status=ShareStatus.OPEN) if is_paid else pledged.exclude(status__in=_IN)
    for share in pledged:
        mate = payer.customer_of(request, share.pk)
        hold = pledges.ended_hold(share, mate) if mate is not None else None
        if hold is not None and (hold.decline_reason == pledges.NOT_TAKEN) == is_paid:
            if is_paid:
                return _failure_notice(group, bill, share, hold)
            words = ended_pledges.words_of(group.checkout, share, hold)
            return {"tone": "move", "icon": "edit", **words}
    return None


def _failure_notice(group: Group, bill: GroupBill, share: PaymentRequest, hold: Payment) -> dict[str, str]:
    """Return the notice for a mate whose hold could not be captured.

    If this mate can pay the share now, the notice also has a heading for the page.
    """
    person, heading, advice = bill.at(share.position), "", ""
    is_open, is_mine = _is_open(group, bill), person is not None and person.is_mine
    if person is not None and person.state == group_members.TAKEN and not is_mine:
        another = _("Take another, or ask {name}.").format(name=group.name) if is_open else ""
        advice = " ".join((_("Someone else has taken this share."), another))
    elif is_open or (is_mine and _is_all_taken(group, bill)):
        heading, advice = _("Your share is not paid yet"), _("Try again, or use another card.")
    words = ended_pledges.words_of_failure(group.checkout, hold, advice=advice)
    return {"tone": "stop", "icon": "alert", "heading": heading, **words}


_IN = (ShareStatus.PLEDGED, ShareStatus.PAYING)


def _is_open(group: Group, bill: GroupBill) -> bool:
    situation = group_situation.situation_of(group.checkout, bill)
    return situation in (Situation.PAID, Situation.REFUND_FAILED, Situation.COLLECTING)


def _is_all_taken(group: Group, bill: GroupBill) -> bool:
    return group_situation.situation_of(group.checkout, bill) == Situation.ALL_TAKEN


def _taken_notice(group: Group, bill: GroupBill, share: Person) -> dict[str, str]:
    # If no share can be taken, a different part of the page says why.
    is_any_free = _is_open(group, bill) and bool(bill.of(group_members.FREE))
    words = _("Take another, or ask {name}.").format(name=group.name) if is_any_free else ""
    title = _("{share} was just taken").format(share=share.of_whom)
    return {"tone": "move", "icon": "ring", "title": title, "words": words}


def parse_number(text: str) -> int:
    """Return a position of at most two digits, or 0 for any other text."""
    return int(text) if text.isdecimal() and len(text) < 3 else 0
