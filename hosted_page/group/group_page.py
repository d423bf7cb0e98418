"""The group page: the free shares, the form to take one, and the group link as a QR code. Rules group.*."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_POST, require_safe

from checkout import current_checkouts, mate_shares, pledges
from checkout.group import share_claims, unit_claims
from checkout.mate_shares import ShareNotOpen
from checkout.models import PaymentRequest
from checkout.states import SHARE_PAID, OperationInProgress, ShareStatus, Status
from config.lib import crypto
from config.lib.web import address, qr_codes
from hosted_page import payer, rendering, summary, waiting_times
from hosted_page.group import free_items, group_members, group_situation, share_claim_limits
from hosted_page.group.group_members import GroupBill
from hosted_page.group.group_notices import page_notice, parse_number
from hosted_page.group.group_order import NO_REFUSAL, Group, TakeRefusal
from hosted_page.payment_target import (
    SIGN_IN,
    PaymentTarget,
    absolute,
    bind_log_context,
    order_at_group_link,
    redirect_page,
    wants_part,
)
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.order_status import late_sentence, page_of
from hosted_page.status.shared_cells import NOT_CHARGED
from hosted_page.steps.split_form import clean_name
from payments import disputes, operator_stops

MAX_NAME = 30


GroupView = Callable[[HttpRequest, Group], HttpResponse]


def for_group(view: GroupView) -> Callable[..., HttpResponse]:
    """Decorate a view so that it receives the split order of a group link.

    If the link is unknown, the view raises Http404. If the cost is no longer split, the page says that no
    share is left.
    """

    @wraps(view)
    def view_group(request: HttpRequest, token: str) -> HttpResponse:
        checkout = order_at_group_link(token)
        bind_log_context(checkout)
        group = Group(checkout, token)
        return view(request, group) if checkout.has_mates else _show_ended(request, group)

    return view_group


def _show_ended(request: HttpRequest, group: Group) -> HttpResponse:
    status = page_of(Situation.NOT_ASKED, Viewer.GROUP_LINK, {"name": group.name})
    return rendering.render_message(
        request,
        PaymentTarget(group.checkout),
        status.heading,
        status.paragraphs[0],
        is_share=True,
        cancel_url_path="",
        here=group.path(),
        order=_labelled_summary(group, due=""),
    )


def redirect_to_group(token: str, **query: int) -> HttpResponseRedirect:
    """Redirect to a group page. A query parameter `left` is the position of a share that was released."""
    parameters = "&".join(f"{name}={value}" for name, value in query.items())
    path = reverse("group", args=[token])
    return HttpResponseRedirect(f"{path}?{parameters}" if parameters else path, status=303)


@require_safe
@for_group
def show_group(request: HttpRequest, group: Group) -> HttpResponse:
    """Show the free shares, or the reason why no share can be taken now."""
    return _render_page(request, group)


def _render_page(request: HttpRequest, group: Group, refusal: TakeRefusal = NO_REFUSAL) -> HttpResponse:
    shares = _current_shares(group)
    own_path = _own_page(request, group, shares) if refusal == NO_REFUSAL else ""
    if own_path:
        return HttpResponseRedirect(own_path, status=303)
    bill = _bill_of(request, group, shares)
    context = _page_context(group, bill, shares)
    is_open = context["closed"] is None
    items = free_items.form_context(group.checkout, shares, refusal.units) if is_open else None
    lost_items = free_items.lost_notice(items) if refusal.kind == "taken" and refusal.units else None
    notice = lost_items or page_notice(request, group, bill, refusal)
    context |= {"refused": refusal, "notice": notice, "items": items}
    return _render_template(request, group, "group", context, status=refusal.status)


def _page_context(group: Group, bill: GroupBill, shares: Sequence[PaymentRequest]) -> dict[str, Any]:
    """Return the context of the group page without its notice."""
    situation = group_situation.situation_of(group.checkout, bill)
    status = page_of(situation, Viewer.GROUP_LINK, _values(group, situation, shares))
    is_open = status.state == "step"
    if situation == Situation.BANK_RETURNED:  # a share that was paid before might not count as paid now
        bill = replace(bill, people=bill.people[:1])
    if situation == Situation.DISPUTED and bill.mine is not None and bill.mine.until:
        status.paragraphs[0] = format_html("{} {}", NOT_CHARGED, status.paragraphs[0])
    return {
        "name": group.name,
        "bill": bill,
        "closed": None if is_open else status,
        "is_pledge": situation == Situation.COLLECTING,
        "failed": status.paragraphs[0] if is_open and status.paragraphs else "",
        "take_action": group.path("take"),
        "group_path": group.path(),
        "sign_in": SIGN_IN,
        "mine_url": group.share_path(bill.mine.position) if bill.mine else "",
        "until": _last_link_end(group, shares) if is_open else "",
        "order": _order_summary(group, bill, situation, is_open=is_open),
    }


def _values(group: Group, situation: Situation, shares: Sequence[PaymentRequest]) -> dict[str, str]:
    values = {"shop": group.checkout.merchant.name, "name": group.name}
    if situation == Situation.EXPIRED:
        values["late"] = late_sentence(group.checkout, says_expired=False)
    return values | {"until": _last_link_end(group, shares)}


def _render_template(
    request: HttpRequest, group: Group, name: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    shared_context = {
        "is_share": True,
        "cancel_url_path": "",
        **rendering.address_context(request, group.path()),
    }
    return rendering.render_page(
        request, PaymentTarget(group.checkout), name, shared_context | context, status=status
    )


def _own_page(request: HttpRequest, group: Group, shares: Sequence[PaymentRequest]) -> str:
    """Return the path of the visitor's own page, if this browser belongs to the lead or to a mate who paid.

    Return "" for anyone else, and for a visitor who was redirected here from another person's share.
    """
    checkout = group.checkout
    if checkout.lead_id is not None and payer.customer_of(request, checkout.pk) == checkout.lead_id:
        return PaymentTarget(checkout).address()
    if request.GET:
        return ""
    for share in shares:
        has_paid = share.status in (
            *SHARE_PAID,
            ShareStatus.PLEDGED,
            ShareStatus.PAYING,
            ShareStatus.REFUNDED,
        )
        if has_paid and share.mate_id is not None and payer.customer_of(request, share.pk) == share.mate_id:
            return group.share_path(share.position)
    return ""


def _order_summary(group: Group, bill: GroupBill, situation: Situation, *, is_open: bool) -> summary.Summary:
    """Return the order's summary for a mate.

    If a share can be taken, or if this browser has taken one, the summary shows the amount of each share.
    """
    shows_amounts = is_open or bill.mine is not None
    is_disputed = situation in (Situation.DISPUTED, Situation.BANK_RETURNED)
    each = (
        format_html(_("{amount} <small>each</small>"), amount=bill.each)
        if shows_amounts and bill.each
        else ""
    )
    total_label = _("Total") if is_disputed else summary.total_label(group.checkout)
    return _labelled_summary(group, due=each, total_label=total_label)


def _labelled_summary(group: Group, **changes: Any) -> summary.Summary:
    """Return the order's summary, labelled as the lead's order. `changes` replace some of its fields."""
    label = _("{name}’s order").format(name=group.name)
    return replace(summary.summary_of(PaymentTarget(group.checkout)), order_label=label, **changes)


def _current_shares(group: Group) -> list[PaymentRequest]:
    """End the shares that are past their deadline, and return all shares."""
    shares = current_checkouts.shares_of(group.checkout)
    if mate_shares.expire_all_late(group.checkout, shares, current_checkouts.read_at(group.checkout)):
        return current_checkouts.shares_of(group.checkout)
    return shares


def _bill_of(request: HttpRequest, group: Group, shares: Sequence[PaymentRequest]) -> GroupBill:
    now = current_checkouts.read_at(group.checkout)
    return group_members.bill_for_claim(group.checkout, shares, payer.claim_of(request), now)


def _last_link_end(group: Group, shares: Sequence[PaymentRequest]) -> str:
    ends = [share.expires_at for share in shares if share.status in (ShareStatus.OPEN, ShareStatus.PAYING)]
    end, now = max((end for end in ends if end), default=None), current_checkouts.read_at(group.checkout)
    return summary.time_until(end, now, group.checkout)


@require_POST
@for_group
def take_share(request: HttpRequest, group: Group) -> HttpResponse:
    """Take a free share for this browser and redirect to the share's page, or show why it was not taken."""
    position = parse_number(request.POST.get("share", ""))
    name = clean_name(request.POST.get("name", ""))[:MAX_NAME].strip()
    browser = payer.browser_of(request)
    if "items" in request.POST:
        position, refusal = _take_units(request, group, name, browser)
    else:
        refusal = _take_share(request, group, position, name, browser)
    if refusal is not None:
        return _render_page(request, group, refusal)
    response = HttpResponseRedirect(group.share_path(position), status=303)
    payer.name_browser(response, browser)
    return response


def _take_units(
    request: HttpRequest, group: Group, name: str, browser: str
) -> tuple[int, TakeRefusal | None]:
    """Take free units. Return the position of their share, and the reason if the units were refused."""
    checkout, units = group.checkout, free_items.chosen_units(request.POST, group.checkout)
    refusal = TakeRefusal(typed=name, units=tuple(units))
    if "show" in request.POST:
        return 0, replace(refusal, kind="show")
    try:
        admit = partial(share_claim_limits.count_claim, address.caller_address(request))
        share = free_items.take(checkout, units, claim=crypto.digest(browser), name=name, admit=admit)
    except free_items.ItemsNotTaken as error:
        return 0, replace(refusal, kind=error.kind, title=error.title, words=error.words, status=422)
    except share_claim_limits.TooManyClaims as error:
        return 0, _over_limit(error, 0, name)
    except (ShareNotOpen, OperationInProgress, unit_claims.UnitsTaken):
        return 0, replace(refusal, kind="taken", status=409)
    return share.position, None


def _over_limit(error: share_claim_limits.TooManyClaims, position: int, name: str) -> TakeRefusal:
    when = waiting_times.time_until(error.until, error.now)
    words = _("Too many shares were taken from your network. Try again {when}.").format(when=when)
    return TakeRefusal("limit", position, name, words, status=429)


def _take_share(
    request: HttpRequest, group: Group, position: int, name: str, browser: str
) -> TakeRefusal | None:
    """Take a share. Return the reason if it was refused, otherwise None."""
    share = next(
        (row for row in current_checkouts.shares_of(group.checkout) if row.position == position), None
    )
    if share is None:
        return TakeRefusal("taken", typed=name, status=409)
    try:
        share_claims.claim_share(
            share.pk,
            claim=crypto.digest(browser),
            name=name,
            is_signed_in=payer.customer_of(request, share.pk) is not None,
            admit=partial(share_claim_limits.count_claim, address.caller_address(request)),
        )
    except share_claims.NameMissing:
        return TakeRefusal("name", position, words=_("Enter your name."), status=422)
    except share_claim_limits.TooManyClaims as error:
        return _over_limit(error, position, name)
    except (ShareNotOpen, OperationInProgress, PaymentRequest.DoesNotExist):
        return TakeRefusal("taken", position, name, status=409)
    return None


@require_safe
@for_group
def show_qr_page(request: HttpRequest, group: Group) -> HttpResponse:
    """Show the group link as a QR code that mates can scan, and the list of who has taken a share.

    If htmx sends the request, return only the part of the page that changes. If no share can be taken any
    more, redirect to the page from which the QR code was opened, because that page says why.
    """
    bill = _bill_of(request, group, _current_shares(group))
    if not _can_still_be_taken(group, bill):
        return redirect_page(request, _close_path(request, group))
    context = {
        "name": group.name,
        "is_pledge": group.checkout.status == Status.CREATED,
        "bill": bill,
        "qr_url": group.path("qr_svg"),
        "poll_url": group.path("qr"),
        "close_url": _close_path(request, group),
        "order": _order_summary(group, bill, Situation.PAID, is_open=True),
    }
    name = "_group_people" if wants_part(request) else "group_qr"
    return _render_template(request, group, name, context)


def _can_still_be_taken(group: Group, bill: GroupBill) -> bool:
    """Return whether a share is free, or is claimed and might become free again."""
    is_paid = (
        group.checkout.status == Status.CAPTURED
        and disputes.blocking_dispute_of_row(group.checkout) is None
        and not operator_stops.is_stopped(group.checkout.merchant_id)
    )
    is_open = is_paid or (group.checkout.status == Status.CREATED and pledges.is_waiting(group.checkout))
    return is_open and any(
        bill.of(state) for state in (group_members.FREE, group_members.TAKEN, group_members.SENT)
    )


def _close_path(request: HttpRequest, group: Group) -> str:
    """Return the address of the page from which the QR code was opened: the lead's page or the group page."""
    checkout = group.checkout
    is_lead = checkout.lead_id is not None and payer.customer_of(request, checkout.pk) == checkout.lead_id
    return PaymentTarget(checkout).address() if is_lead else group.path()


@require_safe
@cache_control(private=True, max_age=86_400, immutable=True)
@for_group
def show_qr_code(request: HttpRequest, group: Group) -> HttpResponse:
    """Return the group link as a QR code."""
    return HttpResponse(qr_codes.svg(absolute(group.path())), content_type="image/svg+xml")
