"""Shows the merchant a preview: a payer's first page with a different name or colour. Rule brand.preview."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation

from config.lib.web import csp
from hosted_page import brand
from hosted_page.logo import storage
from hosted_page.steps.phone import phone_hint
from hosted_page.summary import Line, Summary
from payments import money
from payments.models import Merchant

CURRENCY = "GBP"
LINES = (("Standing ticket, Blue Room", 4, 2250), ("Booking fee", 1, 550))  # lines of the sample order


def preview_page(request: HttpRequest, merchant: Merchant, *, name: str, colour: str) -> HttpResponse:
    """Return the payer's first page with this name and a colour such as "#A61C59". Neither of them is saved.

    The merchant portal shows the page in a frame.
    """
    order = _sample_order(merchant, name, colour)
    with translation.override(settings.LANGUAGE_CODE):
        response = render(
            request, "hosted_page/phone.html", _first_step_context(request, merchant) | {"order": order}
        )
    csp.allow_framing(response)
    return response


def _first_step_context(request: HttpRequest, merchant: Merchant) -> dict[str, Any]:
    """Return the context of a payer's first step, without the order. The forms lead back to the preview."""
    return {
        "action": request.path,
        "cancel_url_path": request.path,
        "value": "",
        "error": "",
        "limit": "",
        "phone_hint": phone_hint(merchant),
        "signed_out": None,
        "is_being_split": False,
        "has_code_ended": False,
        "is_share": False,
        "languages": [],
        "here": "",
    }


def _sample_order(merchant: Merchant, name: str, colour: str) -> Summary:
    total = money.display_for_payer(sum(count * price for _, count, price in LINES), CURRENCY)
    links = {
        link: getattr(merchant, link) for link in ("support_url", "terms_url", "privacy_url", "shop_url")
    }
    return Summary(
        merchant_name=name,
        merchant_initial=name[:1].upper(),
        brand_css=f"{reverse('colour_css', args=[colour.removeprefix('#')])}?{brand.TOKENS_VERSION}",
        logo=storage.logo_of(merchant),
        order_id="A-20417",
        order_label="Order",
        due=total,
        title=LINES[0][0],
        subtitle="",
        lines=[_sample_line(*line) for line in LINES],
        mine=[],
        total_label="Total",
        total=total,
        **links,
    )


def _sample_line(name: str, count: int, price: int) -> Line:
    each = f"{count} × {money.display_for_payer(price, CURRENCY)}" if count > 1 else ""
    return Line(name, each, money.display_for_payer(count * price, CURRENCY))
