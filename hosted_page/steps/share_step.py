"""The texts above the number field on a share's page: the lead, the deadline, and how to decline.

Rule share.declines.
"""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from checkout import refunds
from checkout.models import PaymentRequest
from config.lib import clock
from hosted_page import summary
from hosted_page.group import group_members
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget, lead_name
from hosted_page.status.cells import Situation, Viewer
from hosted_page.status.table import cell_of


def share_context(
    request: HttpRequest, target: PaymentTarget, share: PaymentRequest, box_errors: dict[str, str] | None
) -> dict[str, Any]:
    """Return the context of a share's page: the lead's name, the deadline, the decline button, the opt-in box."""
    name, until = lead_name(target.checkout), _end_of_share(target, share)
    return {
        "ask": {"name": name, "initial": name[:1].upper(), "until": until},
        **decline_context(target),
        "kept": _claim_context(target, share),
        "box": box.box_context(request, target, box_errors),
        "failed_refund": _failed_refund_notice(target),
        "is_pledge": target.is_pledge,
    }


def pledge_context(target: PaymentTarget) -> dict[str, str] | None:
    """Return the context of a pledge, with the time until which the lead can pay. Return None if there is no pledge."""
    if target.share is None or not target.is_pledge:
        return None
    return {"until": _end_of_share(target, target.share)}


def _end_of_share(target: PaymentTarget, share: PaymentRequest) -> str:
    return summary.time_until(share.expires_at, clock.now(), target.checkout)


def _failed_refund_notice(target: PaymentTarget) -> str:
    """Return the notice that a refund of the order has failed, or "" if no refund has failed."""
    if not refunds.has_failed(target.checkout):
        return ""
    (notice,) = cell_of(Situation.REFUND_FAILED, Viewer.HOLDER).paragraphs(
        {"shop": target.checkout.merchant.name}
    )
    return notice


def _claim_context(target: PaymentTarget, share: PaymentRequest) -> dict[str, Any] | None:
    """Return the context about a claim through the group link: the share's name and the end of the claim.

    Return None if the person did not come through the group link.
    """
    if not target.group:
        return None
    return {
        "name": share.shown_name or group_members.share_name(share),
        "initial": group_members.share_mark(share),
        "tint": group_members.colour_number(share),
        "until": group_members.claim_end(share, target.checkout),
        "release_action": target.address("release"),
    }


def decline_context(target: PaymentTarget) -> dict[str, str]:
    """Return the address and the label of the button with which a mate declines a share or leaves it to others.

    If there is no such button, the address is "". There is no button for an order, for a replaced link, and
    at the group link for a share that was sent to a number.
    """
    share = target.share
    if share is None or target.is_sent or target.replaced:
        return {"decline_action": "", "decline_label": ""}
    label = _("I’m not paying this") if share.is_addressed else _("Give this share up")
    return {"decline_action": target.address("decline"), "decline_label": label}
