"""Renders the payer's pages, with their Content Security Policy (rule secret.csp)."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from config.lib.web import csp, french
from hosted_page import language, payer, summary
from hosted_page.payment_target import SIGNED_OUT, PaymentTarget, wants_part
from hosted_page.status.order_status import PageStatus
from payments import money, provider
from payments.provider import CardPage


def render_page(
    request: HttpRequest, target: PaymentTarget, name: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render a payer's page about a target. Values in `context` override those that all pages share."""
    shared_context = {
        "order": summary.summary_of(target),
        "is_share": target.share is not None,
        "languages": language.other_languages(),
        **address_context(request, target.address()),
        "auto_reload_url": target.auto_reload_url,
        "cancel_url_path": target.address("cancel") if target.share is None else "",
        "leave": sign_out_button(request, target),
    }
    response = _render(request, f"hosted_page/{name}.html", shared_context | context, status)
    csp.allow_forms_to(response, *_form_targets(target))
    return response


def address_context(request: HttpRequest, address: str) -> dict[str, str]:
    """Return the context with the address to which the page's links lead back.

    If the page answers a form, `reload_address` makes Back and reload open this address too. Otherwise, the
    browser would ask the payer whether to send the form again.
    """
    return {"here": address, "reload_address": address if request.method == "POST" else ""}


def _render(request: HttpRequest, name: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    response = render(request, name, context, status=status)
    french.elide_page(response)
    return response


def sign_out_button(request: HttpRequest, target: PaymentTarget) -> dict[str, Any] | None:
    """Return the context of the sign-out button, or None if no one is signed in in this browser."""
    if payer.customer_of(request, target.subject) is None:
        return None
    return {"action": target.address("leave"), "is_paying": target.is_payable}


def sign_out_of_live_page(request: HttpRequest, target: PaymentTarget) -> dict[str, Any] | None:
    """Return the context of the button "Sign out", or None if no one is signed in in this browser.

    The button is outside the part of the page that updates itself. Its label must still be right after the
    payment, so it is never "Not you?".
    """
    button = sign_out_button(request, target)
    return button and {**button, "is_paying": False}


def render_message(
    request: HttpRequest,
    target: PaymentTarget,
    heading: str,
    words: str,
    *,
    link: dict[str, Any] | None = None,
    status: int = 200,
    **extra_context: Any,
) -> HttpResponse:
    """Return a page with one message. If `link` is set, the page also has a link with its `href` and `label`."""
    defaults = dict.fromkeys(("further", "back_url", "way_back"), "")
    context = {**defaults, "heading": heading, "words": words, "link": link, **extra_context}
    return render_page(request, target, "message", context, status=status)


def _form_targets(target: PaymentTarget) -> tuple[str, ...]:
    """Return the addresses to which forms may redirect: the shop, the hosted pages, and the provider's card pages."""
    shop = (target.checkout.cancel_url, target.checkout.return_url)
    return (*shop, settings.BASE_URL, *provider.current_provider().page_origins)


def show_card_page(
    request: HttpRequest, target: PaymentTarget, page: CardPage, context: dict[str, Any]
) -> HttpResponse:
    """Show the provider's card page on our host, with the CSP that it needs (rule provider.card_page)."""
    return render_card_page(request, page, context, _form_targets(target))


def render_card_page(
    request: HttpRequest, page: CardPage, context: dict[str, Any], form_targets: Sequence[str]
) -> HttpResponse:
    """Render the provider's card page on our host, for an order or for the sample order.

    The forms of the page may redirect only to the addresses in `form_targets`.
    """
    response = _render(request, page.template, context | page.context)
    csp.allow_forms_to(response, *form_targets)
    csp.allow(response, page.allows)
    return response


def show_status(
    request: HttpRequest, target: PaymentTarget, page: PageStatus, values: dict[str, Any], *, is_refused: bool
) -> HttpResponse:
    """Show the status page, or only its changing part if htmx requests it.

    `values` are added to the page's context and override its defaults.
    """
    context = {
        **vars(page),
        "amount": money.display_for_payer(target.amount, target.checkout.currency),
        "poll_url": target.address(),
        "leave": sign_out_of_live_page(request, target),
        "is_signed_out": SIGNED_OUT in request.GET and payer.customer_of(request, target.subject) is None,
        "change_card_action": target.address("another_card") if page.may_change_card else "",
        **dict.fromkeys(("place_to", "return_url_path", "sign_in_url"), ""),
        **dict.fromkeys(("bill", "box", "paid", "pledged", "receipt_sms", "reconsider", "stay")),
    }
    name = "_status" if wants_part(request) else "status"
    return render_page(request, target, name, context | values, status=422 if is_refused else 200)
