"""Views of the lead's bill: the part that updates itself, and the lead's actions, such as texting a link to a mate."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from checkout import mate_shares
from checkout.group import late_mates, share_changes
from checkout.mate_shares import ShareNotOpen
from checkout.models import NO_CLAIM, Checkout, PaymentRequest
from checkout.states import ShareStatus, Status
from config.lib.prepared import Prepared
from config.lib.web import address
from hosted_page import link_deadline, payer, rendering, views
from hosted_page.group import bill, bill_lines, group_members
from hosted_page.payment_target import PaymentTarget, for_form, for_target
from hosted_page.sms import invitations, limits
from hosted_page.steps.phone import InvalidPhone, parse_phone, wrong_number_text
from hosted_page.steps.split_form import clean_name, clean_short_name
from hosted_page.views import FormErrors
from payments import disputes, money, operator_stops
from payments.operator_stops import AllStopped, MerchantSuspended


def _select_order(checkout_uuid: UUID) -> QuerySet[Checkout]:
    disputed = disputes.blocking_disputes_of(OuterRef("pk")).values("status")
    return (
        Checkout.objects.filter(pk=checkout_uuid)
        .only("status", "merchant_id", "lead_id", "updated_at")
        .annotate(disputed=disputed)
    )


def _select_shares(checkout_uuid: UUID) -> QuerySet[PaymentRequest]:
    fields = ("status", "name", "token_digest", "expires_at", "next_reminder_at", *NO_CLAIM)
    return PaymentRequest.objects.filter(checkout=checkout_uuid).only(*fields).order_by("position")


_ORDER, _SHARES = Prepared(_select_order, UUID), Prepared(_select_shares, UUID, read_at="read_at")


@require_safe
def refresh_bill(request: HttpRequest) -> HttpResponse:
    """Return the current bill, or status 204 if the page already shows it (rule bill.live).

    If the lead is signed out, or the order is no longer captured, the response makes the page reload.
    """
    try:
        checkout_uuid = UUID(request.GET.get("id", ""))
        checkout: Any = _ORDER.get(checkout_uuid)
    except (ValueError, Checkout.DoesNotExist):
        raise Http404 from None
    is_lead = checkout.lead_id is not None and payer.customer_of(request, checkout_uuid) == checkout.lead_id
    if not is_lead or checkout.status != Status.CAPTURED:
        return HttpResponseClientRefresh()
    return HttpResponse(status=204) if _is_bill_current(request, checkout) else _render_bill_part(request)


def _is_bill_current(request: HttpRequest, checkout: Any) -> bool:
    """End the shares that are past their deadline. Return whether the page shows the current bill."""
    shares: list[Any] = _SHARES.all(checkout.pk)
    if shares and mate_shares.expire_all_late(checkout, shares, shares[0].read_at):
        shares = _SHARES.all(checkout.pk)
    if not shares:
        return False
    now, disputed = shares[0].read_at, checkout.disputed or ""
    return bill.bill_digest(checkout, shares, now, disputed) == request.GET.get("seen")


@for_target
def _render_bill_part(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    leads_bill = bill.bill_of(target.checkout, known_no=request.GET.get("no", ""))
    # A lost dispute also changes other parts of the page, so the whole page is loaded again.
    if leads_bill is None or leads_bill.is_given_back:
        return HttpResponseClientRefresh()
    context = views.bill_context(target, leads_bill) | {"refused": "", "asks": "", "added": views.NOT_ADDED}
    return rendering.render_page(request, target, "_bill", context)


def _share_action(
    action: Callable[[HttpRequest, PaymentRequest], object], *, anchor: str = "share"
) -> Callable[..., HttpResponse]:
    """Return a view that applies `action` to the share that the lead's form names.

    Afterwards the view redirects to the element of the lead's page with the id `anchor`-<id of the share>. If
    the state of the share does not allow the action, the page says why.
    """

    @for_form
    def view(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
        if not views.is_lead(request, target):
            return views.show_signed_out(request, target)
        share = _named_share(request, target)
        if share is None:
            return target.go()
        refusal = _try_action(partial(action, request), share)
        if refusal:
            return views.show_page(request, target, FormErrors(act=refusal))
        return target.go_to(f"{anchor}-{share.pk}")

    return view


def _try_action(action: Callable[[PaymentRequest], object], share: PaymentRequest) -> str:
    """Change a share. Return "", or the reason why the share was not changed, as a sentence."""
    try:
        action(share)
    except ShareNotOpen as error:
        return _refusal_sentence(error.status, group_members.name_of(share))
    except (MerchantSuspended, AllStopped):
        return _stopped_sentence()
    return ""


cancel_share = _share_action(lambda request, share: mate_shares.cancel(share.pk))
# The new link is in the collapsed part of the share's line. The anchor makes the browser expand that part.
ask_again = _share_action(lambda request, share: share_changes.ask_again(share.pk), anchor="link")
rename = _share_action(
    lambda request, share: share_changes.rename(share.pk, clean_name(request.POST.get("new_name", "")))
)


@for_form
def add_mate(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Ask one more mate for an amount, as the lead requests."""
    if not views.is_lead(request, target):
        return views.show_signed_out(request, target)
    name, amount = (request.POST.get(field, "")[:60] for field in ("new_name", "new_amount"))
    try:
        minor_units = money.parse(amount, target.checkout.currency) or 0
        share = late_mates.add_mate(target.checkout.pk, name=clean_short_name(name), amount=minor_units)
    except late_mates.AmountNotAllowed:
        form = {"new_name": name, "new_amount": amount, "error": _amount_error(target.checkout)}
        return views.show_page(request, target, FormErrors(added=form))
    except ShareNotOpen:
        return views.show_page(request, target, FormErrors(act=_refusal_sentence("", "")))
    except (MerchantSuspended, AllStopped):
        return views.show_page(request, target, FormErrors(act=_stopped_sentence()))
    return target.go_to(f"share-{share.pk}")


def _stopped_sentence() -> str:
    """Return the sentence that says that no mate can be asked, because an operator has stopped the shop."""
    return _("This shop is not taking payments now. Try again later.")


def _amount_error(checkout: Checkout) -> str:
    words = _("Enter an amount from {minimum} to {maximum}.")
    minimum = mate_shares.amount_rule(checkout).minimum
    maximum = late_mates.own_part(checkout, list(checkout.payment_requests.all()))
    return words.format(
        minimum=money.display_for_payer(minimum, checkout.currency),
        maximum=money.display_for_payer(maximum, checkout.currency),
    )


def _refusal_sentence(status: str, name: str) -> str:
    match status:
        case ShareStatus.PAYING:
            words = _("{name} is paying this share now, so it was not changed. Check again in a minute.")
        case ShareStatus.PAID | ShareStatus.REIMBURSED:
            words = _("{name} has already paid this share, so it was not changed.")
        case ShareStatus.EXPIRED:
            words = _("This link has expired, so the share was not changed.")
        case _:
            words = _("This change is not possible now, so the share was not changed. Check the share below.")
    return words.format(name=name)


def _named_share(request: HttpRequest, target: PaymentTarget) -> PaymentRequest | None:
    """Return the share that a form of the lead's page names, or None if the order has no such share."""
    shares = {str(share.pk): share for share in target.checkout.payment_requests.all()}
    return shares.get(request.POST.get("share", ""))


@for_form
def send_link(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """Text a share's link or a reminder to a mate, as the lead requests."""
    if not views.is_lead(request, target):
        return views.show_signed_out(request, target)
    share = _named_share(request, target)
    if share is None:
        return target.go()
    sms_error = _send_link(request, target, share, request.POST.get("phone", "")[:40])
    if sms_error is None:
        return target.go_to(f"share-{share.pk}")
    # While the shop is stopped, the share's line has no form that could show the error.
    is_stopped = operator_stops.is_stopped(target.checkout.merchant_id)
    errors = FormErrors(act=sms_error.error) if is_stopped else FormErrors(number=sms_error)
    return views.show_page(request, target, errors)


@for_form
def remind(request: HttpRequest, target: PaymentTarget) -> HttpResponse:
    """On the links' last day, text a reminder to each unpaid mate who can be reminded now.

    Rule share.last_day.
    """
    if not views.is_lead(request, target):
        return views.show_signed_out(request, target)
    refusals = _remind(request, target)
    return (
        views.show_page(request, target, FormErrors(act=refusals))
        if refusals
        else target.go_to(link_deadline.ID)
    )


def _remind(request: HttpRequest, target: PaymentTarget) -> str:
    """Send all reminders that the page offers.

    Return "" if all of them were sent. Otherwise, return one text with the name of each mate who could not be
    reminded, and the reason.
    """
    leads_bill, refusals = bill.bill_of(target.checkout), []
    offer = leads_bill.last_day if leads_bill else None
    offered_ids = {line.id for line in offer.to_remind} if offer else set()
    for share in target.checkout.payment_requests.order_by("position"):
        sms_error = _send_link(request, target, share, "") if str(share.pk) in offered_ids else None
        if sms_error is not None:
            refusals.append(f"{group_members.name_of(share)}: {sms_error.error}")
    return " ".join(refusals)


def _send_link(
    request: HttpRequest, target: PaymentTarget, share: PaymentRequest, typed_number: str
) -> bill_lines.SmsError | None:
    """Send a share's link or a reminder. Return the error to show to the lead, or None."""
    is_limit = False
    try:
        number = (
            parse_phone(typed_number, target.checkout.merchant) if typed_number or not share.phone else ""
        )
        invitations.send(share.pk, phone=number, address=address.caller_address(request))
    except InvalidPhone:
        error = wrong_number_text(target.checkout.merchant)
    except limits.TooManySmsMessages as reached:
        error, is_limit = str(reached), not isinstance(reached, limits.CountryNotServed)
    except (MerchantSuspended, AllStopped):
        error = _stopped_sentence()
    except invitations.CannotSendNow:
        return None  # no error, because the page shows the share's current state
    else:
        return None
    return bill_lines.SmsError(str(share.pk), typed_number, error, is_limit=is_limit)
