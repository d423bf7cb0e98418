"""Access to the admin. Operators use the portal's login, with a second factor except in `local`.

Rule operator.rights.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NoReturn, TypeVar, cast

from allauth.account.adapter import get_adapter
from allauth.account.decorators import secure_admin_login
from allauth.core.exceptions import ReauthenticationRequired
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django_htmx.middleware import HtmxDetails

from config.lib.admin.readonly import OperatorAdmin
from portal import access, last_writes
from portal.accounts import second_factor
from portal.models import User

Page = TypeVar("Page", bound=Callable[..., HttpResponseBase])
READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ANY_PERMISSION = "portal.view_user"


class Site(AdminSite):
    """Django's admin behind the portal's login. People who are logged in but are not operators get 403.

    Each change in the admin, by an action or a form, requires proof of identity from the last five minutes.
    The proof is the operator's second factor, or the password if the operator has no second factor. A logout
    does not require proof.
    """

    login = method_decorator(secure_admin_login)(AdminSite.login)

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.disable_action("delete_selected")  # rows can be deleted only one at a time

    def get_urls(self) -> list[Any]:
        """Leave out the URL view_on_site, because no row uses it and its pattern is slow for long paths."""
        return [pattern for pattern in super().get_urls() if getattr(pattern, "name", "") != "view_on_site"]

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Register only our admin classes. Those of libraries allow changes, and let people guess secrets."""
        if admin_class is not None and issubclass(admin_class, OperatorAdmin):
            super().register(model_or_iterable, admin_class, **options)

    def admin_view(self, view: Page, cacheable: bool = False) -> Page:
        """Wrap an admin page so that it requires a second factor, and fresh proof of identity for each change."""
        admin_page: Page = super().admin_view(view, cacheable)

        @wraps(admin_page)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            htmx: HtmxDetails | None = getattr(request, "htmx", None)
            if htmx and not request.user.is_authenticated:
                return access.redirect_to_login(htmx, otherwise=reverse("admin:index"))
            if not self.has_permission(request):
                return admin_page(request, *args, **kwargs)
            if second_factor.is_second_factor_missing(request.user):
                return redirect(second_factor.SET_UP)
            if _changes_something(request) and not access.has_fresh_proof(request):
                _ask_for_proof(request)
            return _respond(partial(admin_page, request, *args, **kwargs), request)

        return cast(Page, guarded)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Redirect to the portal's page for changing a password."""
        return redirect("account_change_password")


def may_do_everything(request: HttpRequest) -> bool:
    """Return whether the operator is a superuser, who has every right."""
    return bool(getattr(request.user, "is_superuser", False))


def may_change_person(request: HttpRequest, person: User | None) -> bool:
    """Return whether the operator may change this person. Only superusers may change operators."""
    is_operator = person is not None and (person.is_staff or person.is_superuser)
    return may_do_everything(request) or not is_operator


def _respond(page: "partial[HttpResponseBase]", request: HttpRequest) -> HttpResponseBase:
    """Return a page's response. A page that only shows data is read from a replica.

    After a request that can have changed data, store the log position of the database. A replica must have
    reached this position before operators read from it again.
    """
    # Load all rights of the person from the primary before the page is read from the replica.
    request.user.has_perm(ANY_PERMISSION)
    response = last_writes.response_after_writes(page, request, last_writes.OPERATORS)
    if _changes_something(request):
        last_writes.record_write(last_writes.OPERATORS)
    return response


def _changes_something(request: HttpRequest) -> bool:
    return request.method not in READ_METHODS and request.path != reverse("admin:logout")


def _ask_for_proof(request: HttpRequest) -> NoReturn:
    """Ask the operator for proof of identity. Afterwards, the POST continues, with the list's filters in its URL."""
    if not get_adapter().get_reauthentication_methods(request.user):
        raise PermissionDenied
    # allauth continues a POST only if the return path has no query. The POST that continues still has its own
    # query.
    request.get_full_path = lambda **_: request.path  # type: ignore[method-assign]
    raise ReauthenticationRequired
