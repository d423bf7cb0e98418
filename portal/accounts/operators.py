"""The admin's door: operators come in as everybody does, with a second factor where one is required.

Rule operator.rights.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from allauth.account.adapter import get_adapter
from allauth.account.decorators import secure_admin_login
from allauth.account.internal.flows import reauthentication
from allauth.core.internal.httpkit import serialize_request
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import urlencode

from config.lib.admin.readonly import OperatorAdmin
from portal import access
from portal.accounts import second_factor

Page = TypeVar("Page", bound=Callable[..., HttpResponseBase])
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})


class Site(AdminSite):
    """Django's admin behind the one login. Who is no operator gets 403.

    Whatever changes something there, an action or a form, wants a proof of the last five minutes of who asks for
    it: a code of their second factor, or the password of an operator who has none. Logging out wants none.
    """

    login = method_decorator(secure_admin_login)(AdminSite.login)

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.disable_action("delete_selected")  # what may be deleted at all is looked at first, one by one

    def get_urls(self) -> list[Any]:
        """Leave out the way to a row's page elsewhere: there is none, and it takes ever longer to read a long path."""
        return [found for found in super().get_urls() if getattr(found, "name", "") != "view_on_site"]

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Show our own pages alone: libraries register theirs as writable, and open to guessing what is secret."""
        if admin_class is not None and issubclass(admin_class, OperatorAdmin):
            super().register(model_or_iterable, admin_class, **options)

    def admin_view(self, view: Page, cacheable: bool = False) -> Page:
        """Wrap a page of the admin: an operator without a required second factor sets it up first."""
        shown: Page = super().admin_view(view, cacheable)

        @wraps(shown)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not self.has_permission(request):
                return shown(request, *args, **kwargs)
            if second_factor.is_missing(request.user):
                return redirect("mfa_activate_totp")
            if _changes_something(request) and not access.is_fresh(request):
                return _asked_for_proof(request)
            return shown(request, *args, **kwargs)

        return cast(Page, guarded)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Passwords are changed in one place."""
        return redirect("account_change_password")


def _changes_something(request: HttpRequest) -> bool:
    return request.method not in LOOKING and request.path != reverse("admin:logout")


def _asked_for_proof(request: HttpRequest) -> HttpResponseBase:
    """Ask the operator who they are; what was posted then goes on, with the filters of the list it came from."""
    methods = get_adapter().get_reauthentication_methods(request.user)
    if not methods:
        raise PermissionDenied
    request.session[reauthentication.STATE_SESSION_KEY] = {"request": serialize_request(request)}
    return redirect(f"{methods[0]['url']}?{urlencode({'next': request.path})}")
