"""A mate at their pay link: who asks, for what, how much, until when; sign-in, card, and what became of it."""

import contextlib

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_POST, require_safe

from checkout import sharing
from checkout.sharing import ShareNotOpen
from config.lib import clock
from hosted_page import box, card, links, pages, payer, share_truth, steps
from hosted_page.truth import Truth
from hosted_page.visit import Visit, asker, at_link
from payments import money


@never_cache
@require_safe
def page(request: HttpRequest, token: str) -> HttpResponse:
    """Show the step that is next, or where the share is."""
    return _page(request, token)


def _page(request: HttpRequest, token: str, wrong: dict[str, str] | None = None) -> HttpResponse:
    visit = at_link(token)
    if (
        visit.share is not None
        and visit.share.expires_at is not None
        and visit.share.expires_at <= clock.now()
    ):
        sharing.expire(visit.share.pk)
        visit = at_link(token)
    customer_uuid = payer.customer_of(request, visit.subject)
    found = share_truth.tell(visit, customer_uuid, clock.now())
    if found is not None:
        return _status(request, visit, found, wrong)
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(headers={"HX-Refresh": "true"})
    if customer_uuid is None:
        return steps.show(request, visit, wrong)
    if visit.payer_of(request) is None:
        return _own_link(request, visit)
    return visit.go("card")


def _status(
    request: HttpRequest, visit: Visit, found: Truth, wrong: dict[str, str] | None = None
) -> HttpResponse:
    fragment = request.headers.get("HX-Request") == "true"
    context = {
        **vars(found),
        "amount": money.display(visit.amount, visit.checkout.currency),
        "poll_url": visit.address(),
        "change_card_action": visit.address("another_card") if found.may_change_card else "",
        "place_to": asker(visit.checkout),
        "box": (box.on(request, visit) or {}) | (wrong or {}) if found.state == "share_paid" else None,
    }
    return pages.show(
        request, visit, "_status" if fragment else "status", context, status=422 if wrong else 200
    )


def _own_link(request: HttpRequest, visit: Visit) -> HttpResponse:
    context = {
        "heading": _("This is your own order"),
        "paragraphs": [
            _("You signed in with the number that placed it. Send this link to your mate instead.")
        ],
        "link": {"href": Visit(visit.checkout).address(), "label": _("Go to your order")},
    }
    return pages.show(request, visit, "message", context)


@require_safe
@cache_control(private=True, max_age=86_400, immutable=True)
def qr(request: HttpRequest, token: str) -> HttpResponse:
    """Draw the link itself, for the lead to show."""
    return HttpResponse(links.qr(at_link(token).absolute()), content_type="image/svg+xml")


@require_POST
def phone(request: HttpRequest, token: str) -> HttpResponse:
    """Send a code to the number that was typed."""
    return steps.take_phone(request, at_link(token))


@require_POST
def resend(request: HttpRequest, token: str) -> HttpResponse:
    """Send a new code to the same number."""
    return steps.resend(request, at_link(token))


@require_POST
def code(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in who enters the right code."""
    visit = at_link(token)
    customer = steps.take_code(request, visit)
    if isinstance(customer, HttpResponse):
        return customer
    response = visit.go()
    payer.remember(response, visit.subject, customer.pk)
    return response


@never_cache
@require_safe
def pay(request: HttpRequest, token: str) -> HttpResponse:
    """Send the mate to the provider's card page."""
    return card.open_form(request, at_link(token))


@never_cache
@require_safe
def paid(request: HttpRequest, token: str) -> HttpResponse:
    """Come back from the provider with a card token."""
    return card.take_token(request, at_link(token))


@never_cache
@require_safe
def confirmed(request: HttpRequest, token: str) -> HttpResponse:
    """Come back from the bank's question."""
    return card.ask_bank(request, at_link(token))


@require_POST
def another(request: HttpRequest, token: str) -> HttpResponse:
    """Let the card go that is waited for."""
    return card.give_up(request, at_link(token))


@require_POST
def opt_in(request: HttpRequest, token: str) -> HttpResponse:
    """Take a mate's tick of the merchant's box, signed in or not."""
    visit = at_link(token)
    wrong = box.take(request, visit)
    return _page(request, token, wrong) if wrong else visit.go_with(box.SAVED)


@require_POST
def decline(request: HttpRequest, token: str) -> HttpResponse:
    """The mate says no. Whoever has the link may: it is the one that they were sent."""
    visit = at_link(token)
    with contextlib.suppress(ShareNotOpen):  # the page tells what is true
        sharing.decline(visit.subject)
    return visit.go()
