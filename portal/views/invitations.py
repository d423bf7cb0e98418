"""The page to which an invitation links. A person who opens the mailed link has proven the mail address."""

from django import forms
from django.contrib import messages
from django.contrib.auth import login, password_validation
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_post_parameters

from portal import access, audit, team
from portal.models import Invitation, Membership, User


class PasswordForm(forms.Form):
    """The form for the password of a person who has no account yet."""

    password = forms.CharField(max_length=128, strip=False, error_messages={"required": "Choose a password."})

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        password_validation.validate_password(password, User(email=self.initial.get("email", "")))
        return password


@sensitive_post_parameters()
def join(request: HttpRequest, token: str) -> HttpResponse:
    """Add a person to a team, with a new account or with the account that has the invitation's address."""
    try:
        invitation = team.find_open_invitation(token)
        person = User.objects.filter(email__iexact=invitation.email).first()
        if person is None:
            return _join_with_new_account(request, token, invitation)
        return _join_with_account(request, token, invitation, person)
    except Invitation.DoesNotExist:
        return render(request, "portal/invitation_ended.html", {}, status=404)


def _join_with_account(
    request: HttpRequest, token: str, invitation: Invitation, person: User
) -> HttpResponse:
    """Add a person who has an account to the team, after a login and a confirmation.

    Raises Invitation.DoesNotExist.
    """
    if not request.user.is_authenticated:
        return redirect(f"{reverse('account_login')}?{urlencode({'next': request.path})}")
    is_other = request.user.pk != person.pk
    if request.method == "POST" and not is_other:
        with transaction.atomic(durable=True):
            membership = _accept_invitation(request, token, person)
        return _go_to_merchant(request, membership)
    context = {"invitation": invitation, "is_known": True, "is_other": is_other}
    return render(request, "portal/join.html", context)


def _join_with_new_account(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponse:
    """Ask for a password, then create an account and add the person to the team.

    Raises Invitation.DoesNotExist.
    """
    form = PasswordForm(request.POST or None, initial={"email": invitation.email})
    if request.method == "POST" and form.is_valid():
        person = User.objects.new_user(invitation.email, form.cleaned_data["password"])
        try:
            with transaction.atomic(durable=True):
                person.save(force_insert=True)
                membership = _accept_invitation(request, token, person)
        except IntegrityError:  # the form was sent twice, and the first request created the account
            return redirect("account_login")
        login(request, person, backend="allauth.account.auth_backends.AuthenticationBackend")
        return _go_to_merchant(request, membership)
    error = form.errors["password"][0] if form.is_bound and form.errors else ""
    context = {"invitation": invitation, "error": error}
    return render(request, "portal/join.html", context, status=422 if error else 200)


def _accept_invitation(request: HttpRequest, token: str, person: User) -> Membership:
    membership = team.accept(token, person)
    audit.record(request, membership, "invitation_accepted", email=person.email, role=membership.role)
    return membership


def _go_to_merchant(request: HttpRequest, membership: Membership) -> HttpResponse:
    request.session[access.CHOSEN_MERCHANT_KEY] = str(membership.merchant_id)
    messages.success(request, f"Welcome to {membership.merchant.name}.")
    return redirect("portal_home")
