"""The forms on the page of a remembered browser: continue with its number, or forget the number (rule known.opens)."""

from django.http import HttpRequest, HttpResponse

from hosted_page import payer, prefill, remembered_browsers
from hosted_page.payment_target import PaymentTarget, for_form
from hosted_page.steps import codes, sign_in


@for_form
def continue_as_remembered(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Sign in the person whom this browser remembers, if the order or share can be paid."""
    browser = remembered_browsers.find_remembered(request)
    if browser is None or not target.is_payable or not prefill.may_skip_code(target, browser.phone):
        return target.go()  # the page shows the current state
    person = codes.person_of(browser.phone)
    return sign_in.complete_sign_in(
        request, target, person, payer.begin_sign_in(target.subject, person.pk, is_proven=False)
    )


@for_form
def forget_number(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Forget the number of this browser, and redirect to the page that asks for a number.

    Also end this browser's sign-in to the order or share, and all its sign-ins for which no code was entered.
    """
    response = target.go()
    remembered_browsers.forget_browser(request, response)
    payer.end_remembered(request, target.subject)
    return response
