"""Shows payment pages without an order, for the daily check. Scripts and headers are those of an order's pages.

The pages are shown only at an address that this service has signed less than a minute ago.
"""

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.views.decorators.http import require_safe

from config.lib.web import csp
from hosted_page import brand, payer, rendering
from hosted_page.summary import Line, Summary
from payments import money, provider, safe_answers
from payments.provider import CardForm, CardPage

FIRST_STEP, CARD = "first_step", "card"
SECONDS = 60  # how long a signed address is valid
AMOUNT, CURRENCY = 1000, "GBP"
_NIL_UUID = UUID(int=0)
_SALT = "card_page_check"


def check_address(step: str) -> str:
    """Return the signed address of a page.

    `step` is FIRST_STEP for the phone step, or CARD for a card page on our host.
    """
    query = urlencode({"step": signing.dumps(step, salt=_SALT)})
    return f"{settings.CHECKOUT_PAGE_URL}/check?{query}"


def card_page() -> str | CardPage:
    """Return the provider's card page for the sample order, or its address. Raises ProviderUnreachable."""
    return_url = f"{settings.CHECKOUT_PAGE_URL}/paid"
    with translation.override(settings.LANGUAGE_CODE):
        return safe_answers.card_page(CardForm(_NIL_UUID, return_url, AMOUNT, CURRENCY, page=page_context()))


@require_safe
def show_check_page(request: HttpRequest) -> HttpResponse:
    """Show the page that the address names.

    Raises Http404 unless this service signed the address less than a minute ago.
    """
    step = _step_of_address(request.GET.get("step", ""))
    with translation.override(settings.LANGUAGE_CODE):
        return _show_card_page(request) if step == CARD else _show_first_step(request)


def _step_of_address(signed: str) -> object:
    try:
        return signing.loads(signed, salt=_SALT, max_age=SECONDS)
    except signing.BadSignature:
        raise Http404 from None


def _show_first_step(request: HttpRequest) -> HttpResponse:
    context = {
        **_common_context(),
        "action": request.path,
        "value": "",
        "error": "",
        "limit": "",
        "phone_hint": "",
        "signed_out": None,
        "is_being_split": False,
        "has_code_ended": False,
    }
    response = render(request, "hosted_page/phone.html", context)
    csp.allow_forms_to(response, *_form_targets())
    return response


def _show_card_page(request: HttpRequest) -> HttpResponse:
    page = card_page()
    if not isinstance(page, CardPage):
        raise Http404
    return rendering.render_card_page(request, page, page_context(), _form_targets())


def page_context() -> dict[str, Any]:
    """Return the template context for the page around the card fields of the sample order.

    For a real order, steps.card_page.page_context returns this context.
    """
    amount = money.display_for_payer(AMOUNT, CURRENCY)
    return {
        **_common_context(),
        "order": asdict(_sample_order(amount)),
        "lead": "",
        "change_split_url": "",
        "is_collecting": False,
        "decline_action": "",
        "decline_label": "",
        "pay_label": f"Pay {amount}",
        "pledge": None,
        "held_rows": [],
        "held_note": "",
        "language": settings.LANGUAGE_CODE,
        "merchant_uuid": "",
        "stay": {"action": "", "seconds": payer.LIFE, "until": "", "is_last": False},
        "leave": {"action": "", "is_paying": True},
        "notice": None,
        "leads_to": [settings.CHECKOUT_PAGE_URL],
    }


def _common_context() -> dict[str, Any]:
    return {
        "order": _sample_order(money.display_for_payer(AMOUNT, CURRENCY)),
        "is_share": False,
        "languages": [],
        "here": "",
        "cancel_url_path": "",
    }


def _form_targets() -> tuple[str, ...]:
    return (settings.BASE_URL, *provider.current_provider().page_origins)


def _sample_order(amount: str) -> Summary:
    colour = brand.PAPER.removeprefix("#")
    return Summary(
        merchant_name="Daily check",
        merchant_initial="D",
        brand_css=f"{reverse('colour_css', args=[colour])}?{brand.TOKENS_VERSION}",
        logo=None,
        order_id="check",
        order_label="Order",
        due=amount,
        title="Daily check",
        subtitle="",
        lines=[Line("Daily check", "", amount)],
        mine=[],
        total_label="Total",
        total=amount,
        **dict.fromkeys(("support_url", "terms_url", "privacy_url", "shop_url"), ""),
    )
