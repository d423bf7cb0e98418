"""allauth's login forms, with our limits on attempts."""

from allauth.account import forms as account
from allauth.account.adapter import get_adapter
from allauth.core import context
from allauth.mfa.base import forms as mfa
from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from config.lib import crypto
from config.lib.web import address
from portal import audit
from portal.accounts import login_limits, second_factor
from portal.models import LoginAttempt

MANY_MAILS = (
    "We have mailed this address several times within an hour. Look for our mails, also in your spam folder, "
    "or try again in an hour."
)
LOCKED = "Too many wrong codes. Someone might know your password. Reset it, or wait and try again."


class LoginForm(account.LoginForm):
    """E-mail and password."""

    @property
    def wants_code_by_mail(self) -> bool:
        """Whether too many passwords were wrong, so that for now only a code by e-mail is accepted."""
        return bool(self.has_error(NON_FIELD_ERRORS, "code_by_mail"))


class ResetPasswordForm(account.ResetPasswordForm):
    """The form for the address to which a reset link is mailed."""

    def clean_email(self) -> str:
        email: str = super().clean_email()
        _count_attempt("reset_mail", email, MANY_MAILS)
        return email


class RequestLoginCodeForm(account.RequestLoginCodeForm):
    """The form for the address to which a login code is mailed."""

    def clean_email(self) -> str:
        email: str = super().clean_email()
        _count_attempt("code_mail", email, MANY_MAILS)
        return email


class ConfirmLoginCodeForm(account.ConfirmLoginCodeForm):
    """The form for the mailed code. It allows three attempts, even if they are sent in parallel."""

    def clean_code(self) -> str:
        refusal = get_adapter().error_messages["incorrect_code"]
        session_and_code = f"{context.request.session.session_key}:{crypto.digest(self.expected_code or '')}"
        _count_attempt("mailed_code", session_and_code, refusal)
        code: str = super().clean_code()
        return code


class ChangePasswordForm(account.ChangePasswordForm):
    """The form for a new password: the current password, and the new one twice."""

    def clean_oldpassword(self) -> str:
        password: str = self.cleaned_data["oldpassword"]
        if not get_adapter().reauthenticate(self.user, password):
            raise get_adapter().validation_error("enter_current_password")
        return password


class SecondFactorForm(mfa.AuthenticateForm):
    """The form for the second factor after the password: a code from the authenticator app, or a recovery code."""

    def clean_code(self) -> str:
        attempt = _count_attempt("second_factor", self.user.email, LOCKED)
        self.authenticator = second_factor.use_code(self.user, self.cleaned_data["code"])
        if self.authenticator is None:
            if login_limits.is_limit_reached(attempt):
                audit.record_person_change(context.request, self.user, "second_factor_locked")
            raise ValidationError("This code is not right, or it was used already.")
        login_limits.clear_attempts(attempt)
        self.authenticator.user = self.user
        return str(self.cleaned_data["code"])


class SecondFactorAgainForm(SecondFactorForm, mfa.ReauthenticateForm):
    """The form in which a person who is already logged in enters a code as fresh proof of identity."""

    def save(self) -> None:
        mfa.ReauthenticateForm.save(self)


def _count_attempt(kind: str, account_name: str, refusal: str) -> LoginAttempt:
    try:
        return login_limits.count_attempt(
            kind, account=account_name, address=address.caller_address(context.request)
        )
    except login_limits.TooManyAttempts:
        raise forms.ValidationError(refusal, code="too_many") from None
