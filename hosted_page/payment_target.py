"""Finds what a page is about: an order, for its lead, or one share, for a mate with a pay link or group link."""

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
from django_htmx.http import HttpResponseClientRedirect

from checkout import current_checkouts, refunds, settling
from checkout.customers import prefills
from checkout.models import Checkout, CheckoutQuerySet, Customer, PaymentRequest
from checkout.states import PAID, PLEDGEABLE, SHARE_PAID, ShareStatus, Status
from config.lib import clock, crypto
from config.lib.prepared import Prepared
from hosted_page import language, payer
from payments import disputes, open_operations

SIGN_IN = "sign_in"  # query parameter that asks a person who has paid to sign in again
SIGNED_OUT = "signed_out"  # query parameter of a paid order's or share's page after the payer has signed out
AUTOMATIC = "looks"  # query parameter of requests that the page makes automatically


@dataclass(frozen=True)
class PaymentTarget:
    """An order or, if `share` is given, that share of the order.

    If the person came through the group link, `group` is its token, otherwise "". If a newer pay link has
    replaced the person's link, `replaced` is the token of the old link, otherwise "".
    """

    checkout: Checkout
    share: PaymentRequest | None = None
    group: str = ""
    replaced: str = ""

    @property
    def subject(self) -> UUID:
        """Id of the share, or of the checkout if there is no share."""
        return self.share.pk if self.share else self.checkout.pk

    @property
    def amount(self) -> int:
        """Amount to be paid, in minor units."""
        return self.share.amount if self.share else self.checkout.amount

    @property
    def is_payable(self) -> bool:
        """Whether a card can be tried now, or is being processed."""
        if self.share is None:
            return self.checkout.status == Status.CREATED
        is_open = self.share.status in (ShareStatus.OPEN, ShareStatus.PAYING)
        return is_open and self.checkout.status in (Status.CREATED, Status.CAPTURED)

    @property
    def is_pledge(self) -> bool:
        """Whether the share's card is only held until the lead pays."""
        return self.share is not None and self.checkout.status in PLEDGEABLE

    @property
    def may_sign_in(self) -> bool:
        """Whether sign-in codes are sent for this target.

        While the target can be paid or is pledged, anyone can get a code. After the payment, only its payer
        can.
        """
        return self.is_payable or self.is_only_for_payer or self.is_pledged

    @property
    def is_pledged(self) -> bool:
        """Whether a mate's card is held for the share. That mate can sign in again, for example to withdraw."""
        return self.share is not None and self.share.status == ShareStatus.PLEDGED

    @property
    def is_only_for_payer(self) -> bool:
        """Whether the target is paid, so that only the payer may see the page."""
        return self.paid_by_uuid is not None

    @property
    def paid_by_uuid(self) -> UUID | None:
        """Id of the person who paid the target, or None if it is not paid."""
        if self.share is None:
            return self.checkout.lead_id if self.checkout.status in PAID else None
        return self.share.mate_id if self.share.status in (*SHARE_PAID, ShareStatus.REFUNDED) else None

    @property
    def paid_at(self) -> datetime | None:
        """Time when the target was paid, or None if it was not."""
        return self.share.paid_at if self.share else self.checkout.captured_at

    def is_paid_by(self, customer_uuid: UUID | None) -> bool:
        """Return whether this person paid the target."""
        return customer_uuid is not None and customer_uuid == self.paid_by_uuid

    def is_known_to(self, customer_uuid: UUID | None) -> bool:
        """Return whether this person has paid the target or pledged the share."""
        has_pledged = self.is_pledged and self.share is not None and customer_uuid == self.share.mate_id
        return self.is_paid_by(customer_uuid) or has_pledged

    def payer_of(self, request: HttpRequest) -> UUID | None:
        """Return the id of the signed-in person if they may pay, otherwise None.

        Only the lead may pay an order, and anyone but the lead may pay a share.
        """
        customer_uuid = payer.customer_of(request, self.subject)
        if (
            customer_uuid is None
            or not self.is_payable
            or (self.is_sent and not self.is_owner(customer_uuid))
        ):
            return None
        return customer_uuid if (customer_uuid == self.checkout.lead_id) == (self.share is None) else None

    @property
    def is_sent(self) -> bool:
        """Whether the person came through the group link, but the share's own link was sent to a number.

        Only the person with that number can pay the share. Rule group.own_link.
        """
        share = self.share
        is_open = share is not None and share.status == ShareStatus.OPEN
        return bool(self.group and share and is_open and share.phone and not share.is_kept(clock.now()))

    def is_owner(self, customer_uuid: UUID) -> bool:
        """Return whether the share was sent to this person's number, or this person has used a card for it."""
        if self.share is None or customer_uuid == self.share.mate_id:
            return self.share is not None
        return bool(self.share.phone) and self.person(customer_uuid).phone == self.share.phone

    def person(self, customer_uuid: UUID) -> Customer:
        """Return the person with this id, including the phone number, which the query for the order does not read."""
        return _PERSON.get(customer_uuid)

    def address(self, step: str = "") -> str:
        """Return the path of a step, or of the page with the current state if `step` is ""."""
        kind = "group_share" if self.group else "share" if self.share else "pay"
        name = f"{kind}{'_' if step else ''}{step}"
        if self.share is None:
            return f"{_path(name)}?id={self.checkout.pk}"
        if self.group:
            return reverse(name, args=[self.group, self.share.position])
        return _path(name, _TOKEN).replace(_TOKEN, self.replaced or self.share.token)

    def reread(self) -> "PaymentTarget":
        """Read the share again, and return its target."""
        share = _SHARE.get(self.subject)
        return PaymentTarget(share.checkout, share, self.group, self.replaced)

    def is_visible_to(self, request: HttpRequest) -> bool:
        """Return whether this browser may see the page.

        A person who came through the group link must have claimed, declined or paid the share. The payment
        ends the claim. The payer can then see the page for an hour after the last extension of their sign-in.
        After the payment, every browser can always see the sign-in page and send its forms.
        """
        if self.replaced:
            return request.path == self.address() or self._is_sign_in_request(request)
        if self.share is None or not self.group or self.is_sent:
            return True
        customer_uuid = payer.customer_of(request, self.subject)
        is_mate = customer_uuid is not None and self._is_of(customer_uuid)
        if is_mate or payer.claim_of(request) == self.share.claim_digest != "":
            return True
        was_signed_in = self.is_paid_by(payer.timed_out_customer(request, self.subject))
        is_of_one_person = self.is_only_for_payer or self.is_pledged
        return was_signed_in or (is_of_one_person and self._is_sign_in_request(request))

    def _is_of(self, customer_uuid: UUID) -> bool:
        """Return whether this person has used a card for the share, or has declined it with their number."""
        if self.share is not None and self.share.status == ShareStatus.DECLINED:
            return self.is_owner(customer_uuid)
        return self.share is not None and customer_uuid == self.share.mate_id

    def _is_sign_in_request(self, request: HttpRequest) -> bool:
        """Return whether the request is for the sign-in page or one of its forms."""
        if request.path == self.address():
            return SIGN_IN in request.GET
        steps = ("phone", "code", "resend", "leave")
        return request.path in [self.address(step) for step in steps]

    def sign_in_path(self) -> str:
        """Return the path of the page that shows the state, but first asks a signed-out payer to sign in."""
        return _with_query(self.address(), SIGN_IN)

    @property
    def auto_reload_url(self) -> str:
        """Path that the page uses to reload itself. A request for this path does not extend a sign-in."""
        return _with_query(self.address(), AUTOMATIC)

    def go_with(self, query: str, step: str = "") -> HttpResponseRedirect:
        """Redirect to a step, or to the page with the current state if `step` is "", with the query parameter
        `query`.
        """
        return HttpResponseRedirect(_with_query(self.address(step), query), status=303)

    def go_to(self, part: str) -> HttpResponseRedirect:
        """Redirect to one element of the page with the current state. `part` is the id of the element."""
        return HttpResponseRedirect(f"{self.address()}#{part}", status=303)

    def absolute(self, step: str = "") -> str:
        """Return the URL of a step, on the hosted page's host."""
        return absolute(self.address(step))

    def go(self, step: str = "") -> HttpResponseRedirect:
        return HttpResponseRedirect(self.address(step), status=303)


def _with_query(address: str, query: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{query}=1"


def absolute(path: str) -> str:
    """Return the URL of a path on the hosted page's host."""
    return f"{settings.CHECKOUT_PAGE_URL.removesuffix(_path('pay'))}{path}"


_TOKEN = "~"  # placeholder for a share's token


@cache  # one page contains many addresses
def _path(name: str, *args: str) -> str:
    return reverse(name, args=args)


def wants_part(request: HttpRequest) -> bool:
    """Return whether htmx requests only the changing part of the page."""
    return request.headers.get("HX-Request") == "true"


def redirect_page(request: HttpRequest, path: str) -> HttpResponse:
    """Redirect the whole page.

    After an ordinary redirect, htmx would insert the new page into a part of the old page.
    """
    return HttpResponseClientRedirect(path) if wants_part(request) else HttpResponseRedirect(path, status=303)


TargetView = Callable[[HttpRequest, PaymentTarget], HttpResponse]


def for_target(view: TargetView, *, shows_page: bool = True) -> Callable[..., HttpResponse]:
    """Decorate a view so that it receives the target at its address.

    The target is the order of `pay?id=`, or the share of a link. If the view rarely shows a page, pass
    `shows_page` as false. The order is then read without its lines. A person who has not claimed the share is
    redirected to the group page. If another request deletes the share meanwhile, the person is redirected to the
    page at the same address. The view raises Http404 if there is no such target.
    """

    @wraps(view)
    def view_target(request: HttpRequest, token: str = "", position: int = 0) -> HttpResponse:
        target = _find_target(request, token, position, shows_page=shows_page and request.method != "POST")
        bind_log_context(target.checkout)
        language.prefer_locale(request, prefills.locale_of(target.checkout) or "")
        if not target.is_visible_to(request):
            path = f"{reverse('group', args=[token])}?taken={position}" if position else target.address()
            return redirect_page(request, path)
        try:
            return view(request, target)
        except PaymentRequest.DoesNotExist:
            return redirect_page(request, target.address())

    return view_target


def bind_log_context(checkout: Checkout) -> None:
    """Add the ids of the order and its merchant to all further log lines of this request."""
    ids = {"merchant": checkout.merchant_id, "checkout": checkout.pk}
    structlog.contextvars.bind_contextvars(**{name: str(uuid) for name, uuid in ids.items()})


def _find_target(request: HttpRequest, token: str, position: int, *, shows_page: bool) -> PaymentTarget:
    if position:
        return target_at_group_link(token, position)
    if token:
        return target_at_link(token)
    return _order_target(request, _ORDER_FOR_PAGE if shows_page else _ORDER)


def for_page(view: TargetView) -> Callable[..., HttpResponse]:
    """Decorate the view of a page like `for_target`. It accepts only GET requests."""
    return require_safe(for_target(view))


def for_return(view: TargetView) -> Callable[..., HttpResponse]:
    """Decorate a view to which the provider's pages send the payer back, like `for_page`.

    The view rarely shows a page, so the order is read without its lines.
    """
    return require_safe(for_target(view, shows_page=False))


def for_form(view: TargetView) -> Callable[..., HttpResponse]:
    """Decorate the view of a form like `for_target`. It accepts only POST requests."""
    return require_POST(for_target(view))


def _order_target(request: HttpRequest, rows: Prepared[Checkout]) -> PaymentTarget:
    """Return the order that the address names. If the order is past its deadline, let it lapse or expire first.

    Raises Http404 if there is no such order.
    """
    try:
        (checkout_id,) = request.GET.getlist("id")
        checkout_uuid = UUID(checkout_id)
    except ValueError:
        raise Http404 from None
    try:
        return PaymentTarget(current_checkouts.read_one(rows.get, checkout_uuid))
    except Checkout.DoesNotExist:
        raise Http404 from None


_PERSON = Prepared(lambda pk: Customer.objects.filter(pk=pk), UUID)


def _with_relations(rows: CheckoutQuerySet) -> QuerySet[Checkout]:
    rows = rows.select_related("merchant", "payment", "lead", "group_link")
    # No page shows the lead's number, and its decryption would slow down each read.
    rows = rows.defer("lead__phone")
    return current_checkouts.with_read_at(prefills.with_locale(rows))


_ORDER = Prepared(lambda pk: _with_relations(Checkout.objects.filter(pk=pk)), UUID)


def _with_page_values(rows: CheckoutQuerySet) -> QuerySet[Checkout]:
    orders = _with_relations(rows.with_bill())
    annotated = refunds.with_failed(disputes.with_disputed(open_operations.with_open_kind(orders)))
    return settling.with_needs_accounts(annotated)


_ORDER_FOR_PAGE = Prepared(lambda pk: _with_page_values(Checkout.objects.filter(pk=pk)), UUID)


def target_at_link(token: str) -> PaymentTarget:
    """Return the share of a pay link. Raises Http404 if the service never created the link."""
    digest = crypto.digest(token)
    if share := _SHARE_AT_LINK.first(digest):
        return PaymentTarget(share.checkout, share)
    if share := _share_query().filter(replaced_links__token_digest=digest).first():
        return PaymentTarget(share.checkout, share, replaced=token)
    raise Http404


def order_at_group_link(token: str) -> Checkout:
    """Return the order of a group link. Raises Http404 if the service never created the link.

    The cost of the order might no longer be split.
    """
    checkout = _ORDER_AT_GROUP_LINK.first(crypto.digest(token))
    if checkout is None:
        raise Http404
    return checkout


def target_at_group_link(token: str, position: int) -> PaymentTarget:
    """Return the share at this position of a group link's order.

    If no share has this position now, return the last replaced share that had it. Raises Http404 if there was
    never such a share.
    """
    digest = crypto.digest(token)
    for share in _SHARES_AT_GROUP_LINK.all(digest):
        if share.position == position:
            return PaymentTarget(share.checkout, share, token)
    rows = _share_query().filter(checkout__group_link__token_digest=digest, position=position)
    replaced = rows.order_by("-replaced_at").first()
    if replaced is None:
        raise Http404
    return PaymentTarget(replaced.checkout, replaced, token)


def _share_query() -> QuerySet[PaymentRequest]:
    rows = PaymentRequest.every.select_related("checkout__merchant", "checkout__lead", "payment")
    return rows.defer("checkout__lead__phone")


_SHARE_AT_LINK = Prepared(lambda digest: _share_query().filter(token_digest=digest), str)
_ORDER_AT_GROUP_LINK = Prepared(
    lambda digest: _with_page_values(Checkout.objects.filter(group_link__token_digest=digest)), str
)
_SHARES_AT_GROUP_LINK = Prepared(
    lambda digest: _share_query().filter(checkout__group_link__token_digest=digest, replaced_at=None), str
)
_SHARE = Prepared(lambda pk: _share_query().filter(pk=pk), UUID)


def lead_name(checkout: Checkout) -> str:
    """Return the lead's name as mates see it."""
    return (checkout.lead.name if checkout.lead else "") or _("Your mate")
