"""The split step: the lead chooses who shares the cost, and how (rule split.shares)."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from checkout import current_checkouts, mate_shares, pledges
from checkout.authorizations import NotPayable, NotTheLead
from checkout.models import Checkout
from checkout.split import item_amounts, split_amounts
from checkout.states import OperationInProgress
from hosted_page import ended_pledges, payer, prefill, rendering, share_bar, summary, views
from hosted_page.payment_target import PaymentTarget, for_target
from hosted_page.steps import sign_in_extension, typed_split
from hosted_page.steps.split_form import REDRAW_BUTTONS, ROWS, Row, SplitForm, clean_short_name
from payments import money, operator_stops


@for_target
def split(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Show the split form. If a valid form was sent, save the split and redirect to the next step."""
    if not target.payer_of(request):
        return _redirect_signed_out(request, target)
    if operator_stops.is_stopped(target.checkout.merchant_id):
        return target.go()
    if request.method != "POST":
        return _show_split(request, target)
    form = SplitForm(request.POST, target.checkout)
    if REDRAW_BUTTONS & request.POST.keys() or not form.is_valid():
        return _show_split(request, target, form)
    return _save_split(request, target, form)


def _save_split(request: HttpRequest, target: PaymentTarget, form: SplitForm) -> HttpResponse:
    was_split = target.checkout.has_mates
    try:
        form.write()
    except mate_shares.TooLateToCollect:
        form.errors["when"] = _("There is too little time left to get everyone in first.")
        return _show_split(request, target, form)
    except (NotPayable, NotTheLead, OperationInProgress):
        return target.go()
    step = "" if form.gets_everyone_in else "card"
    since = current_checkouts.read_at(target.checkout)
    has_ended = was_split and bool(ended_pledges.shares_without_hold(target.checkout, since))
    response = target.go_with(ended_pledges.CHANGED, step) if has_ended else target.go(step)
    typed_split.delete_values(request, response)
    return response


def _redirect_signed_out(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Redirect to the sign-in. If the lead's sign-in has ended, keep the values that the lead typed.

    If the browser has no current or ended sign-in, show a page that says that the values are not saved.
    """
    response, customer_uuid = target.go(), payer.timed_out_customer(request, target.subject)
    is_known = customer_uuid is not None or payer.customer_of(request, target.subject) is not None
    if request.method == "POST" and customer_uuid is not None and customer_uuid == target.checkout.lead_id:
        typed_split.store_values(request, response, target.checkout)
    elif request.method == "POST" and target.is_payable and not is_known:
        return views.show_signed_out(request, target)
    return response


def _show_split(request: HttpRequest, target: PaymentTarget, form: SplitForm | None = None) -> HttpResponse:
    if form is None:
        typed = typed_split.typed_values(request, target.checkout)
        form = SplitForm(typed, target.checkout) if typed else _saved_split_form(target)
    context, status = _split_context(request, target, form), 422 if form.errors else 200
    response = rendering.render_page(request, target, "split", context, status=status)
    payer.prolong(request, response, target.subject)
    return response


def _saved_split_form(target: PaymentTarget) -> SplitForm:
    """Return the form with the saved split.

    If the lead has no name yet, use the name that the merchant sent.
    """
    form = SplitForm.from_saved(target.checkout)
    form.your_name = form.your_name or clean_short_name(prefill.prefilled_name(target))
    return form


def _split_context(request: HttpRequest, target: PaymentTarget, form: SplitForm) -> dict[str, Any]:
    checkout = target.checkout
    return {
        "stay": sign_in_extension.extension_notice(request, target),
        "action": target.address("split"),
        **rendering.address_context(request, target.address("split")),
        "form": form,
        "first_until": _collect_until(checkout),
        "lines": _mate_lines(form),
        "max_people": max(2, mate_shares.max_people(checkout)),
        "equal": _equal_share(checkout, form.people),
        "own": _own_amounts(form),
        "by_item": _item_amounts(form),
        "bar": share_bar.parts(form.amounts_by_person or _excess_amounts(form)),
        "amount": money.display_for_payer(checkout.amount, checkout.currency),
        "minor": _script_values(checkout),
    }


def _collect_until(checkout: Checkout) -> str:
    """Return the time until which the lead can pay. Return "" if too little time is left for mates to pledge first."""
    if not pledges.can_collect(checkout, current_checkouts.read_at(checkout)):
        return ""
    return summary.short_time(checkout.payable_until, summary.zone_of(checkout))


def _excess_amounts(form: SplitForm) -> list[tuple[str, int]]:
    """Return the amounts for the bar if the mates' amounts exceed the order's. The lead's amount is then 0."""
    return [("", 0), *((row.initial, form.typed_amounts.get(row.position, 0)) for row in form.rows)]


def _script_values(checkout: Checkout) -> dict[str, Any]:
    """Return the values that the page's script needs for its calculations, in minor units."""
    rule = mate_shares.amount_rule(checkout)
    return {
        "total": checkout.amount,
        "digits": money.minor_digits(checkout.currency),
        "minimum": rule.minimum,
        "step": rule.step,
        "currency": checkout.currency,
    }


def _mate_lines(form: SplitForm) -> list[dict[str, Any]]:
    """Return the mates' lines for two ways to split: equally (`is_equal`) and by own amounts (`is_own`)."""
    equal, own = min(form.people, split_amounts.MAX_PEOPLE) - 1, max(ROWS, len(form.rows))
    costs = dict(enumerate(form.items.costs, start=2))
    rows = form.rows + [Row(position) for position in range(len(form.rows) + 2, max(equal, own) + 2)]
    return [
        {
            "row": row,
            "is_equal": row.position <= equal + 1,
            "is_own": row.position <= own + 1,
            "is_item": row.position <= form.item_mates + 1,
            "cost": money.display_for_payer(costs.get(row.position, 0), form.checkout.currency),
        }
        for row in rows
    ]


def _equal_share(checkout: Checkout, people: int) -> dict[str, Any]:
    """Return the lead's amount and each mate's amount if `people` people split the cost equally.

    For other numbers of people, the page's script calculates the amounts itself.
    """
    capped_people, step = (
        min(people, mate_shares.max_people(checkout)),
        mate_shares.amount_rule(checkout).step,
    )
    yours, each = split_amounts.equal_shares(checkout.amount, capped_people, step=step)
    return {
        "mates": ngettext("{count} mate", "{count} mates", people - 1).format(count=people - 1),
        "count": people - 1,
        "more": _("{amount} more").format(amount=_remainder_in_words(yours - each, checkout.currency))
        if yours != each
        else "",
        "yours": money.display_for_payer(yours, checkout.currency),
        "each": money.display_for_payer(each, checkout.currency),
    }


def _remainder_in_words(amount: int, currency: str) -> str:
    """Return a remainder as people say it, such as "2p"."""
    is_pence = currency == "GBP" and amount < 100
    return _("{count}p").format(count=amount) if is_pence else money.display_for_payer(amount, currency)


def _item_amounts(form: SplitForm) -> dict[str, Any]:
    """Return the lead's amount and the cost of the free units in a split by item."""
    items, currency = form.items, form.checkout.currency
    return {
        "yours": money.display_for_payer(max(0, items.leads_cost), currency),
        "more": _("{amount} more").format(amount=_remainder_in_words(items.remainder, currency))
        if items.remainder > 0
        else "",
        "free": sum(items.free),
        "free_cost": money.display_for_payer(items.free_cost, currency),
        **item_amounts.sums(form.checkout.bill)._asdict(),
    }


def _own_amounts(form: SplitForm) -> dict[str, Any]:
    """Return the lead's amount, the sum of all amounts, and by how much the sum exceeds the order's amount."""
    checkout = form.checkout
    mates_total = sum(form.typed_amounts.values())
    leads_amount = checkout.amount - mates_total
    excess = money.display_for_payer(-leads_amount, checkout.currency)
    return {
        "left": money.display_for_payer(max(leads_amount, 0), checkout.currency),
        "sum": money.display_for_payer(max(mates_total, checkout.amount), checkout.currency),
        "over": _("{more} more than the order").format(more=excess) if leads_amount < 0 else "",
    }
