"""The notice at the top of the group page. It says what has just happened to a share."""

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _

from checkout import pledges
from checkout.models import PaymentRequest
from checkout.states import ShareStatus, Status
from hosted_page import ended_pledges, payer
from hosted_page.group import group_members, group_situation
from hosted_page.group.group_members import GroupBill, Person
from hosted_page.group.group_order import Group, TakeRefusal
from hosted_page.payment_target import SIGN_IN
from hosted_page.status.cells import Situation


def page_notice(
    request: HttpRequest, group: Group, bill: GroupBill, refusal: TakeRefusal
) -> dict[str, str] | None:
    """Return the notice at the top of the page, None if there is none.

    It says why no share was taken, or that this person has just released or declined a share. If the person's
    pledge has ended, for example because the lead changed the split, it says that the hold is released.
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
    """Return the notice about what this person has just done, or about their pledge that has ended."""
    shares = {name: bill.at(parse_number(request.GET.get(name, ""))) for name in ("taken", "left", "no")}
    if shares["taken"] is not None and not shares["taken"].is_mine:
        return _ended_pledge_notice(request, group) or _not_claimed_notice(group, bill, shares["taken"])
    if shares["left"] is not None and shares["left"].state == group_members.FREE:
        title = _("You have not been charged")
        words = _("{share} is free again.").format(share=shares["left"].of_whom)
        return {"tone": "still", "icon": "check", "title": title, "words": words}
    if shares["no"] is not None and shares["no"].state == group_members.LEAD:
        return _declined_notice(group, shares["no"].position) or _not_asked_notice(group, bill)
    return _ended_pledge_notice(request, group)


def _declined_notice(group: Group, position: int) -> dict[str, str] | None:
    """Return the notice for a person who has just declined, None if the lead has since taken over the share."""
    if not group.checkout.payment_requests.filter(position=position, status=ShareStatus.DECLINED).exists():
        return None
    sentence = _("You have not been charged. {name} can see that you said no.").format(name=group.name)
    further = _("If you change your mind, tell {name}.").format(name=group.name)
    return {"tone": "still", "icon": "check", "title": _("You said no"), "words": f"{sentence} {further}"}


def _not_claimed_notice(group: Group, bill: GroupBill, share: Person) -> dict[str, str] | None:
    """Return the notice for a person who was redirected here because they have not claimed the share.

    The person might have paid the share in a browser that no longer remembers it, so the notice of a paid
    share offers a sign-in.
    """
    if share.was_paid:
        sign_in = f"{group.share_path(share.position)}?{SIGN_IN}=1"
        question = _("Did you pay this? Sign in to see your receipt")
        words = format_html('<a class="link" href="{}">{}</a>', sign_in, question)
        if share.state == group_members.PAID:
            title = _("{share} is paid").format(share=share.of_whom)
            return {"tone": "done", "icon": "check", "title": title, "words": words}
        # The share was paid and then refunded. The title does not say this, because only the payer and the
        # shop may know it.
        title = _("Share {number}").format(number=share.position)
        return {"tone": "still", "icon": "check", "title": title, "words": words}
    if share.state == group_members.LEAD:
        return _not_asked_notice(group, bill)
    return _taken_notice(group, bill, share) if share.state == group_members.TAKEN else None


def _not_asked_notice(group: Group, bill: GroupBill) -> dict[str, str] | None:
    """Return the notice about a share that the lead covers, None if the page says that no share can be taken."""
    if not _is_open(group, bill):
        return None
    title = _("{name} is no longer asking for this").format(name=group.name)
    return {"tone": "still", "icon": "check", "title": title, "words": _("You have not been charged.")}


def _ended_pledge_notice(request: HttpRequest, group: Group) -> dict[str, str] | None:
    """Return the notice for a mate whose pledge has ended, None for anyone else.

    After the capture, only a pledge that could not be captured has a notice.
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
            words = ended_pledges.words_of(group.checkout, share, hold)
            return {"tone": "move", "icon": "edit", **words}
    return None


_IN = (ShareStatus.PLEDGED, ShareStatus.PAYING)


def _is_open(group: Group, bill: GroupBill) -> bool:
    situation = group_situation.situation_of(group.checkout, bill)
    return situation in (Situation.PAID, Situation.REFUND_FAILED, Situation.COLLECTING)


def _taken_notice(group: Group, bill: GroupBill, share: Person) -> dict[str, str]:
    # If no share can be taken, another part of the page says why.
    is_any_free = _is_open(group, bill) and bool(bill.of(group_members.FREE))
    words = _("Take another, or ask {name}.").format(name=group.name) if is_any_free else ""
    title = _("{share} was just taken").format(share=share.of_whom)
    return {"tone": "move", "icon": "ring", "title": title, "words": words}


def parse_number(text: str) -> int:
    """Return a position of at most two digits, 0 for any other text."""
    return int(text) if text.isdecimal() and len(text) < 3 else 0
