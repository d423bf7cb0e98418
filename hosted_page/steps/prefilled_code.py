"""The form that requests a code for the number that the merchant sent (rule prefill.code)."""

from functools import partial

from django.http import HttpRequest, HttpResponse

from hosted_page import prefill
from hosted_page.payment_target import PaymentTarget, for_form
from hosted_page.steps import sign_in


@for_form
def text_code(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Send a code to the number that the merchant sent. The limits are the same as for a typed number."""
    phone = prefill.offered_number(target)
    if not phone:
        return target.go()  # the page shows the current state
    return sign_in.send_code(request, target, phone, partial(sign_in.show_prefilled, request, target, phone))
