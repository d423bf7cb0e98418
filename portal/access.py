"""Access to the portal: its members, the merchant for which a person acts, and the actions that each role allows.

Rule portal.roles.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec

import structlog
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

from config.lib.web import request_id
from payments.cause import Cause
from portal import last_writes
from portal.accounts import second_factor
from portal.models import Membership, Role

ALL_ROLES = frozenset(Role)
MANAGERS = frozenset({Role.OWNER, Role.ADMIN})
BUILDERS = MANAGERS | {Role.DEVELOPER}
HELPERS = MANAGERS | {Role.SUPPORT}

# For each action, the roles that may take it. A view names the action that it requires.
ROLES_BY_ACTION: dict[str, frozenset[Role]] = {
    "view": ALL_ROLES,
    "export": ALL_ROLES - {Role.VIEWER},
    "refund": HELPERS,
    "cancel": HELPERS,
    "note": BUILDERS | HELPERS,
    "resend": BUILDERS | HELPERS,
    "reveal": MANAGERS,  # shows the personal data of a marketing.opted_in event
    "change_webhooks": BUILDERS,
    "approve_endpoint": MANAGERS,  # lets the endpoint receive personal data
    "change_keys": BUILDERS,
    "change_team": MANAGERS,
    "change_settings": MANAGERS,
    "read_audit": MANAGERS,
}
CHOSEN_MERCHANT_KEY = "merchant"  # session key: the merchant that a person with several merchants has chosen
MERCHANT_FIELD = "for_merchant"  # form field: the merchant for which the form's page was opened
OPENED_FOR_HEADER = "X-Merchant"  # each htmx request has this header, with the value of MERCHANT_FIELD

Params = ParamSpec("Params")
View = Callable[Concatenate[HttpRequest, Membership, Params], HttpResponseBase]
Guarded = Callable[..., HttpResponseBase]


class NotAllowed(PermissionDenied):
    """Raised if the person's role does not allow the action."""

    def __init__(self, membership: Membership, action: str) -> None:
        super().__init__(action)
        self.role = membership.role
        self.allowed_roles = [role.value for role in Role if role in ROLES_BY_ACTION[action]]


class OtherMerchant(PermissionDenied):
    """Raised if the form or the page was opened for a merchant other than the person's current merchant."""

    def __init__(self, membership: Membership) -> None:
        super().__init__(MERCHANT_FIELD)
        self.other_merchant = membership.merchant.name


def may(membership: Membership, action: str) -> bool:
    """Return whether the person's role allows the action."""
    return membership.role in ROLES_BY_ACTION[action]


def recheck(membership: Membership, action: str) -> None:
    """Read the person's role again, and raise NotAllowed if it no longer allows the action.

    Call this function in the transaction of the change, because the role can have changed since the view read
    it.
    """
    role = Membership.objects.filter(pk=membership.pk).values_list("role", flat=True).first()
    if role is None or role not in ROLES_BY_ACTION[action]:
        raise NotAllowed(membership, action)
    membership.role = role


class _Guard(NamedTuple):
    """What a view requires in addition to a login. The fields are the arguments of `requires`."""

    action: str
    sensitive: bool
    form_of: str
    reads_form: Callable[[HttpRequest], None]
    chooses_merchant: bool

    def response(
        self, request: HttpRequest, membership: Membership, ids: dict[str, Any]
    ) -> HttpResponseBase | None:
        """Return the response that replaces the view's response, or None if the view may run.

        Raises NotAllowed, OtherMerchant, ReauthenticationRequired.
        """
        if not may(membership, self.action):
            raise NotAllowed(membership, self.action)
        if must_set_up_second_factor(membership):
            return redirect("mfa_activate_totp")
        if self.form_of and request.method != "POST":
            return _to_page(self.form_of, ids)
        self.reads_form(request)
        if not self.chooses_merchant and _is_for_other_merchant(request, membership):
            return _refuse_other_merchant(request, membership)
        if self.sensitive and request.method == "POST" and not has_fresh_proof(request):
            raise ReauthenticationRequired
        return None


def requires(
    action: str,
    *,
    sensitive: bool = False,
    form_of: str = "",
    reads_form: Callable[[HttpRequest], None] = lambda request: None,
    chooses_merchant: bool = False,
) -> Callable[[View[Params]], Guarded]:
    """Restrict a view to signed-in people whose role allows the action. The view gets their membership.

    `sensitive`: a POST requires proof of identity from the last five minutes. If the proof is missing, the
    person is asked for it, and then the POST continues.

    `form_of`: the URL name of the page with the form, for a view that only accepts POST. Other requests, such
    as a GET after a login, are redirected to that page.

    `reads_form`: a function that gets the request before any field of the form is read.

    `chooses_merchant`: accept a form that was opened for a different merchant. Otherwise, such a form is
    refused.

    Raises NotAllowed, OtherMerchant. Rules portal.roles, portal.stale_forms.
    """
    guard = _Guard(action, sensitive, form_of, reads_form, chooses_merchant)

    def decorated(view: View[Params]) -> Guarded:
        @wraps(view)
        @_require_login
        def guarded(request: HttpRequest, *args: Params.args, **kwargs: Params.kwargs) -> HttpResponseBase:
            membership = _acting_membership(request, kwargs)
            response = guard.response(request, membership, kwargs)
            if response is not None:
                return response
            render_view = partial(view, request, membership, *args, **kwargs)
            return last_writes.response_after_writes(render_view, request, membership.merchant_id)

        return guarded

    return decorated


def _is_for_other_merchant(request: HttpRequest, membership: Membership) -> bool:
    """Return whether the page that sends the request was opened for a merchant other than the current one.

    Our forms always name their merchant. If a form does not name a merchant and the person belongs to
    several, the form counts as opened for a different merchant.
    """
    opened_for = request.headers.get(OPENED_FOR_HEADER, "")
    if request.method == "POST":
        opened_for = request.POST.get(MERCHANT_FIELD, opened_for)
        if not opened_for:
            return Membership.objects.filter(user=membership.user_id).count() > 1
    return opened_for not in ("", str(membership.merchant_id))


def _refuse_other_merchant(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Make htmx reload the page, which then shows the current merchant. Without htmx, raise OtherMerchant."""
    if getattr(request, "htmx", None):
        return HttpResponseClientRefresh()
    raise OtherMerchant(membership)


def _acting_membership(request: HttpRequest, ids: dict[str, Any]) -> Membership:
    """Return the person's current membership. Add its merchant and the checkout to the request's log lines.

    Raises PermissionDenied for a person without a membership.
    """
    membership = current_membership(request)
    if membership is None:
        raise PermissionDenied
    checkout_facts = {"checkout": str(ids["checkout_uuid"])} if "checkout_uuid" in ids else {}
    structlog.contextvars.bind_contextvars(merchant=str(membership.merchant_id), **checkout_facts)
    return membership


def _require_login(view: Guarded) -> Guarded:
    """Require a login. If htmx sent the request, the login replaces the whole page, not only a part of it."""
    view_after_login: Guarded = login_required(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        htmx: HtmxDetails | None = getattr(request, "htmx", None)
        if htmx and not request.user.is_authenticated:
            return redirect_to_login(htmx, otherwise=reverse("portal_home"))
        return view_after_login(request, *args, **kwargs)

    return guarded


def redirect_to_login(htmx: HtmxDetails, *, otherwise: str) -> HttpResponseBase:
    """Answer an htmx request with a redirect of the whole page to the login.

    After the login, the person returns to the page that sent the request. If that page is not on this site,
    the person gets to the path `otherwise`.
    """
    query = urlencode({"next": _page_around(htmx) or otherwise})
    return HttpResponseClientRedirect(f"{reverse('account_login')}?{query}")


def _page_around(htmx: HtmxDetails) -> str | None:
    """Return the path of the page that sent the htmx request, or None if the page is not on this site."""
    if not (htmx.current_url or "").isascii():
        return None
    try:
        return htmx.current_url_abs_path
    except ValueError:
        return None


def _to_page(name: str, ids: dict[str, Any]) -> HttpResponseBase:
    """Redirect to the page with this URL name. If its URL takes no ids, leave them out."""
    try:
        address = reverse(name, kwargs=ids)
    except NoReverseMatch:
        address = reverse(name)
    return redirect(address)


def current_membership(request: HttpRequest) -> Membership | None:
    """Return the person's membership at the merchant that the person chose, or else the oldest membership.

    Return None for a person without a membership.
    """
    memberships = (
        Membership.objects.filter(user=request.user.pk)
        .select_related("merchant", "user")
        .order_by("created_at")
    )
    chosen_merchant = request.session.get(CHOSEN_MERCHANT_KEY)
    return (
        memberships.filter(merchant=chosen_merchant).first() if chosen_merchant else None
    ) or memberships.first()


@contextmanager
def or_404() -> Iterator[None]:
    """Raise Http404 if the block raises ObjectDoesNotExist."""
    try:
        yield
    except ObjectDoesNotExist:
        raise Http404 from None


def must_set_up_second_factor(membership: Membership) -> bool:
    """Return whether the person must set up a second factor before anything else."""
    return second_factor.is_second_factor_missing(membership.user)


def has_fresh_proof(request: HttpRequest) -> bool:
    """Return whether the person has proven their identity in the last five minutes.

    For operators who have a second factor, only the second factor counts as proof.
    """
    records: list[dict[str, Any]] = get_authentication_records(request, request.user)
    if must_prove_by_second_factor(request.user):
        records = [record for record in records if record["method"] == "mfa"]
    latest = max((record["at"] for record in records), default=0)
    return bool(time.time() - latest < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT)


def must_prove_by_second_factor(person: Any) -> bool:
    """Return whether a password is not enough proof, because the person is an operator with a second factor."""
    return bool(person.is_staff and is_mfa_enabled(person))


def cause(membership: Membership) -> Cause:
    """Return the cause that this request's changes record: the person and the request's id."""
    return Cause(f"user:{membership.user_id}", request_id.current_id())
