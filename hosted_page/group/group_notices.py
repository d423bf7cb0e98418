"""The notice at the top of the group page: what has just happened to a share."""

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _

from hosted_page.group import group_members, group_situation
from hosted_page.group.group_members import GroupBill, Person
from hosted_page.group.group_order import Group, TakeRefusal
from hosted_page.payment_target import SIGN_IN
from hosted_page.status.cells import Situation


def page_notice(
    request: HttpRequest, group: Group, bill: GroupBill, refused: TakeRefusal
) -> dict[str, str] | None:
    """Return the notice at the top of the page, None if there is none.

    The notice says one of four things: the network has taken too many shares, another person has taken or
    paid the requested share, a share was released, or this person refused a share.
    """
    if refused.kind == "limit":
        return {"tone": "stop", "icon": "alert", "title": _("No more shares for now"), "words": refused.words}
    if refused.kind == "items":
        return {"tone": "stop", "icon": "alert", "title": refused.title, "words": refused.words}
    asked = {name: bill.at(parse_number(request.GET.get(name, ""))) for name in ("taken", "left", "no")}
    tried = bill.at(refused.position) if refused.kind == "taken" else None
    if tried is not None and tried.state != group_members.FREE and not tried.is_mine:
        return _taken_notice(group, bill, tried)
    if asked["taken"] is not None and not asked["taken"].is_mine:
        return _not_claimed_notice(group, bill, asked["taken"])
    if asked["left"] is not None and asked["left"].state == group_members.FREE:
        title = _("You have not been charged")
        words = _("{share} is free again.").format(share=asked["left"].of_whom)
        return {"tone": "still", "icon": "check", "title": title, "words": words}
    if asked["no"] is not None and asked["no"].state == group_members.LEAD:
        words = _("You have not been charged. {name} can see that you said no.").format(name=group.name)
        return {"tone": "still", "icon": "check", "title": _("You said no"), "words": words}
    return None


def _not_claimed_notice(group: Group, bill: GroupBill, share: Person) -> dict[str, str] | None:
    """Return the notice for a person who was redirected here because they have not claimed the share.

    The person might have paid the share in a browser that no longer remembers it, so the notice of a paid
    share offers a sign-in.
    """
    if share.was_paid:
        sign_in = f"{group.share_path(share.position)}?{SIGN_IN}=1"
        asks = _("Did you pay this? Sign in to see your receipt")
        words = format_html('<a class="link" href="{}">{}</a>', sign_in, asks)
        if share.state == group_members.PAID:
            title = _("{share} is paid").format(share=share.of_whom)
            return {"tone": "done", "icon": "check", "title": title, "words": words}
        # The share was paid and then refunded. The title does not say this, because only the payer and the
        # shop may know it.
        title = _("Share {number}").format(number=share.position)
        return {"tone": "still", "icon": "check", "title": title, "words": words}
    if share.state == group_members.LEAD:
        title = _("{name} is no longer asking for this").format(name=group.name)
        charged = _("You have not been charged.")
        return {"tone": "still", "icon": "check", "title": title, "words": charged}
    return _taken_notice(group, bill, share) if share.state == group_members.TAKEN else None


def _taken_notice(group: Group, bill: GroupBill, share: Person) -> dict[str, str]:
    # If no share can be taken, another part of the page says why.
    situation = group_situation.situation_of(group.checkout, bill)
    is_open = situation in (Situation.PAID, Situation.REFUND_FAILED, Situation.COLLECTING)
    is_any_free = is_open and bool(bill.of(group_members.FREE))
    words = _("Take another, or ask {name}.").format(name=group.name) if is_any_free else ""
    title = _("{share} was just taken").format(share=share.of_whom)
    return {"tone": "move", "icon": "ring", "title": title, "words": words}


def parse_number(text: str) -> int:
    """Return a position of at most two digits, 0 for any other text."""
    return int(text) if text.isdecimal() and len(text) < 3 else 0
