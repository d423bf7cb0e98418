"""The view with which a mate withdraws a pledge, or replaces its card (rule pledge.withdraw)."""

import contextlib

from django.http import HttpRequest, HttpResponse

from checkout.group import pledging
from checkout.mate_shares import ShareNotOpen
from checkout.states import OperationInProgress
from hosted_page import payer
from hosted_page.group import group_page
from hosted_page.payment_target import PaymentTarget, for_form


@for_form
def withdraw(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """End the pledge of the mate who is signed in. Then show the share's state, or the card form."""
    mate, share = payer.customer_of(request, target.subject), target.share
    uses_another_card = "another" in request.POST
    # If the pledge has ended, or the lead is paying, the page shows the current state.
    with contextlib.suppress(ShareNotOpen, OperationInProgress):
        if mate is not None and share is not None:
            pledging.withdraw(share.pk, mate=mate, uses_another_card=uses_another_card)
            if uses_another_card:
                return target.go("card")
            if target.group:
                return group_page.redirect_to_group(target.group)
    return target.go()
