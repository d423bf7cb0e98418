"""Who may come in, and for which merchant they act."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from portal.models import Membership


class AccountAdapter(DefaultAccountAdapter):
    """People are invited; nobody signs up by themselves."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


def merchant_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let in who is signed in and belongs to a merchant; the view gets the membership."""

    @wraps(view)
    @login_required
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        membership = Membership.objects.filter(user=request.user.pk).select_related("merchant").first()
        if membership is None:
            raise PermissionDenied
        return view(request, membership, *args, **kwargs)

    return guarded
