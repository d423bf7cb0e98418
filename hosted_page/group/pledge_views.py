"""The view with which a mate withdraws a pledge, or replaces its card (rule pledge.withdraw)."""

import contextlib
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from checkout.group import pledging
from checkout.mate_shares import ShareNotOpen
from checkout.states import OperationInProgress
from config.lib.web import address
from hosted_page import payer, rendering
from hosted_page.group import group_page
from hosted_page.payment_target import PaymentTarget, for_form
from hosted_page.steps import declines
from hosted_page.steps.declines import TooManyDeclines


@for_form
def withdraw(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """End the pledge of the mate who is signed in. Then show the share's state, or the card form."""
    mate, share = payer.customer_of(request, target.subject), target.share
    uses_another_card = "another" in request.POST
    if uses_another_card and (refusal := _refuse_another_card(request, target, mate)):
        return refusal
    # If the pledge has ended, or the lead is paying, the page shows the current state.
    with contextlib.suppress(ShareNotOpen, OperationInProgress):
        if mate is not None and share is not None:
            pledging.withdraw(share.pk, mate=mate, uses_another_card=uses_another_card)
            if uses_another_card:
                return target.go("card")
            if target.group:
                return group_page.redirect_to_group(target.group)
    return target.go()


def _refuse_another_card(
    request: HttpRequest, target: PaymentTarget, mate: UUID | None
) -> HttpResponse | None:
    """Return a page that says that the hold stays, if the limits allow no other card. Otherwise return None."""
    if mate is None or not target.is_pledged:
        return None
    try:
        declines.check_limits(target, target.person(mate), address.caller_address(request))
    except TooManyDeclines:
        link = {"href": target.address(), "label": _("Open the page again")}
        heading, words = _("No more cards for now"), _("You’re still in. The hold on your card stays.")
        return rendering.render_message(request, target, heading, words, link=link, status=429)
    return None
