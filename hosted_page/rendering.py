"""How a page of the payer's is shown (rule secret.csp)."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from config.lib.web import csp
from hosted_page import language, summary
from hosted_page.payment_target import PaymentTarget


def show(
    request: HttpRequest,
    target: PaymentTarget,
    name: str,
    context: dict[str, Any],
    *,
    status: int = 200,
    may_cancel: bool = True,
) -> HttpResponse:
    checkout = target.checkout
    shared = {
        "order": summary.of(target),
        "is_share": target.share is not None,
        "languages": language.others(),
        "here": target.address(),
        "cancel_url_path": target.address("cancel") if may_cancel and target.share is None else "",
    }
    response = render(request, f"hosted_page/{name}.html", {**shared, **context}, status=status)
    csp.allow_forms_to(response, checkout.cancel_url, checkout.return_url, settings.BASE_URL)
    response["Cache-Control"] = "no-store"
    return response
