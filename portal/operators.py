"""The admin's door: operators come in as everybody does, with a second factor where one is required."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from allauth.account.decorators import secure_admin_login
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import method_decorator

Page = TypeVar("Page", bound=Callable[..., HttpResponseBase])


class Site(AdminSite):
    """Django's admin behind the one login. Who is no operator gets 403."""

    login = method_decorator(secure_admin_login)(AdminSite.login)

    def admin_view(self, view: Page, cacheable: bool = False) -> Page:
        """Wrap a page of the admin: an operator without a required second factor sets it up first."""
        shown: Page = super().admin_view(view, cacheable)

        @wraps(shown)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if self.has_permission(request) and wants_second_factor(request):
                return redirect("mfa_activate_totp")
            return shown(request, *args, **kwargs)

        return cast(Page, guarded)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Passwords are changed in one place."""
        return redirect("account_change_password")


def wants_second_factor(request: HttpRequest) -> bool:
    """Return whether the operator must set up a second factor before anything else."""
    return bool(settings.TOTP_REQUIRED and not is_mfa_enabled(request.user))
