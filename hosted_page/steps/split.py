"""The split step: who shares the cost, and how (rule split.shares)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from checkout import sharing, split_amounts
from checkout.authorizations import NotPayable
from checkout.models import Checkout
from checkout.states import OperationInProgress
from hosted_page import rendering
from hosted_page.payment_target import PaymentTarget, for_target
from hosted_page.steps.split_form import SplitForm
from payments import money


@never_cache
@for_target
def split(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Ask who shares the cost; the answer leads to the card."""
    if not target.payer_of(request):
        return target.go()
    if request.method != "POST":
        return _split(request, target)
    form = SplitForm(request.POST, target.checkout)
    if "add" in request.POST or not form.is_valid():
        return _split(request, target, form)
    try:
        form.write()
    except (NotPayable, OperationInProgress):
        return target.go()
    return target.go("card")


def _split(request: HttpRequest, target: PaymentTarget, form: SplitForm | None = None) -> HttpResponse:
    checkout = target.checkout
    form = form or SplitForm.of(checkout)
    context = {
        "action": target.address("split"),
        "form": form,
        "equal": _equal_share(checkout, form.people),
        "parts": range(1, max(2, sharing.max_people(checkout)) + 1),
        "amount": money.for_payer(checkout.amount, checkout.currency),
        "minor": _minor(checkout),
    }
    return rendering.show(request, target, "split", context, status=422 if form.errors else 200)


def _minor(checkout: Checkout) -> dict[str, Any]:
    """Return what the script calculates with, in minor units."""
    rule = sharing.amount_rule(checkout)
    return {
        "total": checkout.amount,
        "digits": money.minor_digits(checkout.currency),
        "minimum": rule.minimum,
        "step": rule.step,
        "currency": checkout.currency,
    }


def _equal_share(checkout: Checkout, people: int) -> dict[str, str]:
    """Return what each of so many bears if they share equally; the script calculates it anew for another number."""
    shown, step = min(people, sharing.max_people(checkout)), sharing.amount_rule(checkout).step
    yours, each = split_amounts.equally(checkout.amount, shown, step=step)
    more = money.for_payer(yours - each, checkout.currency)
    return {
        "who": _("Your mate") if people == 2 else _("Each mate"),
        "mates": _("One mate")
        if people == 2
        else _("{count} mates, each this much").format(count=people - 1),
        "times": "2" if people == 2 else f"×{people - 1}",
        "note": _("{more} more, so that it adds up").format(more=more) if yours != each else "",
        "yours": money.for_payer(yours, checkout.currency),
        "each": money.for_payer(each, checkout.currency),
    }
