"""Makes and opens the signed link to the marketing box. The link names the order and the placement.

Merchants use the link in their mails or app.
"""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from checkout.models import Checkout
from hosted_page import rendering
from hosted_page.models import OptIn
from hosted_page.opt_in import box
from hosted_page.payment_target import PaymentTarget

LIFE = timedelta(days=90)
PLACEMENTS = (OptIn.Placement.EMAIL_LINK, OptIn.Placement.APP, OptIn.Placement.OTHER)
_SALT = "opt-in"


def url(checkout: Checkout, placement: str) -> str:
    """Return the link for an order and one of PLACEMENTS. The link is valid for 90 days."""
    token = signing.dumps([checkout.pk.hex, placement], salt=_SALT)
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(reverse('pay'))}{reverse('opt_in_link', args=[token])}"


@require_http_methods(["GET", "HEAD", "POST"])
def show_box(request: HttpRequest, token: str) -> HttpResponse:
    """Show the box without a tick. If its form was sent, save the opt-in.

    The event has no phone number, because no one is signed in here.
    """
    target, placement = _read_link(token)
    errors: dict[str, str] = {}
    if request.method == "POST":
        errors = box.save_tick(request, target, placement)
        if not errors:
            return HttpResponseRedirect(f"{request.path}?{box.SAVED}=1", status=303)
    box_context = box.box_context(request, target, errors)
    if box_context is None:
        words = _("{shop} is not sending offers now.").format(shop=target.checkout.merchant.name)
        heading = _("No offers to sign up for")
        return rendering.render_message(request, target, heading, words, cancel_url_path="")
    page_box = box_context | {"action": request.path, "is_alone": True}
    context = {"box": page_box, "cancel_url_path": "", **rendering.address_context(request, request.path)}
    return rendering.render_page(request, target, "opt_in", context, status=422 if errors else 200)


def _read_link(token: str) -> tuple[PaymentTarget, str]:
    """Return the target and the placement of a link.

    Raises Http404 if the service never created the link, or if the link is too old.
    """
    try:
        checkout_hex, placement = signing.loads(token, salt=_SALT, max_age=LIFE)
    except signing.BadSignature:
        raise Http404 from None
    rows = Checkout.objects.select_related("merchant", "lead")
    return PaymentTarget(get_object_or_404(rows, pk=UUID(checkout_hex))), placement
