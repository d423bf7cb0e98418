"""What a page is about: a whole order, for its lead, or one share of it, for the mate at its or the group's link."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, wraps
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from checkout import reading, settling
from checkout.customers import prefills
from checkout.models import Checkout, CheckoutQuerySet, Customer, PaymentRequest
from checkout.states import PAID, SHARE_PAID, ShareStatus, Status
from config.lib import crypto
from config.lib.prepared import Prepared
from hosted_page import language, payer
from payments import disputes, open_operations

SIGN_IN = "sign_in"  # in the query when somebody who has paid comes back
LOOKS = "looks"  # in the query when a page loads itself anew, which no person does


@dataclass(frozen=True)
class PaymentTarget:
    """An order to pay or, with a share, that share of it; `group` is the token of the group's link that led there."""

    checkout: Checkout
    share: PaymentRequest | None = None
    group: str = ""

    @property
    def subject(self) -> UUID:
        """The uuid of what is paid for: the share's or the checkout's."""
        return self.share.pk if self.share else self.checkout.pk

    @property
    def amount(self) -> int:
        """What is to be paid, in minor units."""
        return self.share.amount if self.share else self.checkout.amount

    @property
    def is_payable(self) -> bool:
        """Whether a card may be tried, or is being tried."""
        if self.share is None:
            return self.checkout.status == Status.CREATED
        is_open = self.share.status in (ShareStatus.OPEN, ShareStatus.PAYING)
        return is_open and self.checkout.status == Status.CAPTURED

    @property
    def may_sign_in(self) -> bool:
        """Whether codes are sent: to anybody who may pay, and to whoever has paid and comes back."""
        return self.is_payable or self.is_of_payer_alone

    @property
    def is_of_payer_alone(self) -> bool:
        """Whether it is paid, so that nobody but who has paid it has anything to do here."""
        return self.paid_by_uuid is not None

    @property
    def paid_by_uuid(self) -> UUID | None:
        """The id of the person who has paid it, None of what is not paid."""
        if self.share is None:
            return self.checkout.lead_id if self.checkout.status in PAID else None
        return self.share.mate_id if self.share.status in (*SHARE_PAID, ShareStatus.REFUNDED) else None

    @property
    def paid_at(self) -> datetime | None:
        """When it was paid."""
        return self.share.paid_at if self.share else self.checkout.captured_at

    def is_paid_by(self, customer_uuid: UUID | None) -> bool:
        """Whether this person has paid it."""
        return customer_uuid is not None and customer_uuid == self.paid_by_uuid

    def payer_of(self, request: HttpRequest) -> UUID | None:
        """Return the id of the signed-in person if they may pay: the lead an order, anybody else a share; else None."""
        customer_uuid = payer.customer_of(request, self.subject)
        is_lead = customer_uuid is not None and customer_uuid == self.checkout.lead_id
        return customer_uuid if self.is_payable and is_lead == (self.share is None) else None

    def person(self, customer_uuid: UUID) -> Customer:
        """Return a person who is known by their id, with their number, which no order is read with."""
        return _PERSON.get(customer_uuid)

    def address(self, step: str = "") -> str:
        """Return the path of a step; without one, of the page that shows what is true."""
        kind = "group_share" if self.group else "share" if self.share else "pay"
        name = f"{kind}{'_' if step else ''}{step}"
        if self.share is None:
            return f"{_path(name)}?id={self.checkout.pk}"
        if self.group:
            return reverse(name, args=[self.group, self.share.position])
        return _path(name, _TOKEN).replace(_TOKEN, self.share.token)

    def anew(self) -> "PaymentTarget":
        """Return the share as it is now."""
        share = _NOW.get(self.subject)
        return PaymentTarget(share.checkout, share, self.group)

    def is_of(self, request: HttpRequest) -> bool:
        """Whether this browser may be here: who has come by the group's link must have taken the share, or paid it.

        A claim ends with the payment: whoever has paid is known by their sign-in, for an hour also by one that is over,
        and signs in again at addresses that show anybody the same.
        """
        if self.share is None or not self.group:
            return True
        customer_uuid = payer.customer_of(request, self.subject)
        is_mate = customer_uuid is not None and customer_uuid == self.share.mate_id
        if is_mate or payer.claim_of(request) == self.share.claim_digest != "":
            return True
        was_in = self.is_paid_by(payer.signed_out(request, self.subject))
        return was_in or (self.is_of_payer_alone and self._is_to_sign_in(request))

    def _is_to_sign_in(self, request: HttpRequest) -> bool:
        """Whether the request is for the page, or a form, of the sign-in."""
        if request.path == self.address():
            return SIGN_IN in request.GET
        return request.path in (self.address("phone"), self.address("code"), self.address("resend"))

    def way_back(self) -> str:
        """Return the path at which whoever has paid is asked to sign in, unless they are, and sees what is theirs."""
        return self._with(SIGN_IN)

    @property
    def looks_url(self) -> str:
        """The path at which the page looks by itself at what is true, which puts no sign-in's end off."""
        return self._with(LOOKS)

    def _with(self, query: str) -> str:
        address = self.address()
        return f"{address}{'&' if '?' in address else '?'}{query}=1"

    def go_with(self, query: str) -> HttpResponseRedirect:
        """Redirect to the page that shows what is true, with a query that it knows."""
        return HttpResponseRedirect(self._with(query), status=303)

    def go_to(self, part: str) -> HttpResponseRedirect:
        """Redirect to a part of the page that shows what is true, by its id there."""
        return HttpResponseRedirect(f"{self.address()}#{part}", status=303)

    def absolute(self, step: str = "") -> str:
        """Return the URL of a step, on the hosted page's host."""
        return absolute(self.address(step))

    def go(self, step: str = "") -> HttpResponseRedirect:
        return HttpResponseRedirect(self.address(step), status=303)


def absolute(path: str) -> str:
    """Return the URL of a path on the hosted page's host."""
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(_path('pay'))}{path}"


_TOKEN = "~"  # stands for a share's


@cache  # a page names many of them
def _path(name: str, *args: str) -> str:
    return reverse(name, args=args)


TargetView = Callable[[HttpRequest, PaymentTarget], HttpResponse]


def for_target(view: TargetView, *, shows: bool = True) -> Callable[..., HttpResponse]:
    """Decorate a view, to which the target of its address is passed: the order of `pay?id=`, or a link's share.

    One that mostly `shows` no page reads the order without its lines. Whoever has not taken the share is led back to
    the group's page. Raises Http404 if there is none.
    """

    @wraps(view)
    def found(request: HttpRequest, token: str = "", position: int = 0) -> HttpResponse:
        target = _at(request, token, position, shows=shows and request.method != "POST")
        bind(target.checkout)
        language.prefer(request, prefills.locale(target.checkout) or "")
        if not target.is_of(request):
            return HttpResponseRedirect(f"{reverse('group', args=[token])}?taken={position}", status=303)
        return view(request, target)

    return found


def bind(checkout: Checkout) -> None:
    """Name the order in each line of the log from here on."""
    facts = {"merchant": checkout.merchant_id, "checkout": checkout.pk}
    structlog.contextvars.bind_contextvars(**{name: str(uuid) for name, uuid in facts.items()})


def _at(request: HttpRequest, token: str, position: int, *, shows: bool) -> PaymentTarget:
    if position:
        return at_group_link(token, position)
    return at_link(token) if token else _order_of(request, _SHOWN if shows else _READ)


def for_page(view: TargetView) -> Callable[..., HttpResponse]:
    """Like `for_target`, for a page that is shown by GET."""
    return require_safe(for_target(view))


def for_return(view: TargetView) -> Callable[..., HttpResponse]:
    """Like `for_page`, for an address to which others lead back, and which leads on."""
    return require_safe(for_target(view, shows=False))


def for_form(view: TargetView) -> Callable[..., HttpResponse]:
    """Like `for_target`, for a form that is posted."""
    return require_POST(for_target(view))


def _order_of(request: HttpRequest, rows: Prepared[Checkout]) -> PaymentTarget:
    """Return the order that the address names, lapsed or expired first if it is late; 404 without one."""
    try:
        (given,) = request.GET.getlist("id")
        checkout_uuid = UUID(given)
    except ValueError:
        raise Http404 from None
    try:
        return PaymentTarget(reading.one(rows, checkout_uuid))
    except Checkout.DoesNotExist:
        raise Http404 from None


_PERSON = Prepared(lambda pk: Customer.objects.filter(pk=pk), UUID)


def _whole_order(rows: CheckoutQuerySet) -> QuerySet[Checkout]:
    rows = rows.select_related("merchant", "payment", "lead", "group_link")
    rows = rows.defer("lead__phone")  # no page shows it, and it would be decrypted
    return reading.with_read_at(prefills.with_locale(rows))


_READ = Prepared(lambda pk: _whole_order(Checkout.objects.filter(pk=pk)), UUID)


def _shown(checkout_uuid: UUID) -> QuerySet[Checkout]:
    rows = _whole_order(Checkout.objects.filter(pk=checkout_uuid).with_bill())
    return settling.with_untold(disputes.with_disputed(open_operations.with_open_kind(rows)))


_SHOWN = Prepared(_shown, UUID)


def at_link(token: str) -> PaymentTarget:
    """Return the share that a pay link leads to; 404 for a link that we never made."""
    share = _AT_LINK.first(crypto.digest(token))
    if share is None:
        raise Http404
    return PaymentTarget(share.checkout, share)


def at_group_link(token: str, position: int) -> PaymentTarget:
    """Return the share in this place on the bill of a group's link; 404 for a link that we never made."""
    shares = _AT_GROUP_LINK.all(crypto.digest(token))
    for share in shares:
        if share.position == position:
            return PaymentTarget(share.checkout, share, token)
    raise Http404


def _whole() -> QuerySet[PaymentRequest]:
    rows = PaymentRequest.objects.select_related("checkout__merchant", "checkout__lead", "payment")
    return rows.defer("checkout__lead__phone")


_AT_LINK = Prepared(lambda digest: _whole().filter(token_digest=digest), str)
_AT_GROUP_LINK = Prepared(lambda digest: _whole().filter(checkout__group_link__token_digest=digest), str)
_NOW = Prepared(lambda pk: _whole().filter(pk=pk), UUID)


def lead_name(checkout: Checkout) -> str:
    """Return the name by which mates know the lead."""
    return (checkout.lead.name if checkout.lead else "") or _("Your mate")
