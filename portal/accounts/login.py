"""The hooks that allauth calls during a login. They add our limits, our messages and our audit log."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from config.lib import crypto
from config.lib.web import address, origins, qr_codes
from portal import access, audit
from portal.accounts import login_limits, second_factor, sessions, unused_accounts
from portal.accounts.password_slots import TooManyLogins
from portal.mail import outbox, support
from portal.models import User

# The changes that people make to the security of their own account. For each change, the key is allauth's mail
# template, and the value is the action in the audit log.
RECORDED = {
    "account/email/password_changed": "password_changed",
    "account/email/password_reset": "password_reset",
    "mfa/email/totp_activated": "second_factor_added",
    "mfa/email/totp_deactivated": "second_factor_removed",
    "mfa/email/webauthn_added": "passkey_added",
    "mfa/email/webauthn_removed": "passkey_removed",
    "mfa/email/recovery_codes_generated": "recovery_codes_made",
}
NEW_PASSWORD = {"password_changed", "password_reset"}
# The key of the error message, by the kind of attempt and the fields of the limit that was reached.
REFUSALS = {
    ("password", login_limits.ACCOUNT): "code_by_mail",
    ("password", login_limits.PAIR): "password_locked",
    ("password", login_limits.ADDRESS): "address_locked",
    ("password_again", login_limits.ACCOUNT): "password_again_locked",
}
# The session keeps a digest of the password at the first step of the login under this key.
PASSWORD_SESSION_KEY = "password_at_login"
# For each mail template, the number of seconds for which the code or link in the mail is valid.
LIFETIMES = {
    "account/email/login_code": settings.ACCOUNT_LOGIN_BY_CODE_TIMEOUT,
    "account/email/password_reset_key": settings.PASSWORD_RESET_TIMEOUT,
}


class AccountAdapter(DefaultAccountAdapter):
    """Logs people in with our limits. People cannot sign up, because only a team or an operator can invite them."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "email_password_mismatch": "This e-mail address and password do not match.",
        "password_locked": "Ten wrong passwords. Wait 30 minutes, or reset your password.",
        "address_locked": "Too many wrong passwords from your network. Try again in an hour.",
        "code_by_mail": "There were many wrong passwords for this account. Log in with a code by e-mail.",
        "password_again_locked": "Ten wrong passwords. Wait 30 minutes.",
        "enter_current_password": "This is not your password.",
        "incorrect_password": "This is not your password.",
        "incorrect_code": "This code is not right.",
        "too_many_login_attempts": "Three wrong codes. Ask for a new one.",
        "invalid_password_reset": "This link is not valid any more.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the caller's IP address, in the same way as our limits and logs."""
        return address.caller_address(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the attempt before its password is checked. Raises ValidationError."""
        self._attempt = self._count_attempt("password", credentials["email"], request)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Return the person with this e-mail and password. Raises ValidationError, TooManyLogins."""
        try:
            user: User | None = super().authenticate(request, **credentials)
        except TooManyLogins:
            self._attempt.delete()  # it does not count, because no password was compared
            raise
        if user is not None:
            login_limits.clear_attempts(self._attempt)
        return user

    def reauthenticate(self, user: User, password: str) -> bool:
        """Return whether the password is the person's. Raises ValidationError, TooManyLogins."""
        attempt = self._count_attempt("password_again", user.email, context.request)
        try:
            is_right = user.check_password(password)
        except TooManyLogins:
            attempt.delete()
            raise
        if not is_right:
            return False
        login_limits.clear_attempts(attempt)
        return True

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Return whether the latest proof of identity is too old. A login counts as proof."""
        return not access.has_fresh_proof(context.request)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Return the ways in which the person can prove their identity again, with a passkey first.

        For operators who have a second factor, the password is left out.
        """
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        if methods and access.must_prove_by_second_factor(user):
            methods = [method for method in methods if method["id"] != "reauthenticate"]
        return sorted(methods, key=lambda method: method["id"] != "mfa_reauthenticate:webauthn")

    def pre_login(self, request: HttpRequest, user: User, **facts: Any) -> HttpResponse | None:
        """Return the response that stops a login although the password or code was correct.

        Return None if the login continues with the second factor.
        """
        refusal: HttpResponse | None = super().pre_login(request, user, **facts)
        if refusal is None and (facts["email"] or user.email).lower() != user.email.lower():
            # An operator has changed the address after the code was mailed, perhaps because others read its mails.
            request.session.pop(unused_accounts.LOGIN_SESSION_KEY, None)
            messages.error(request, "This code was sent to a previous address. Use your current one.")
            refusal = redirect("account_login")
        request.session[PASSWORD_SESSION_KEY] = user.get_session_auth_hash()
        return refusal or unused_accounts.ask_for_proofs(request, user)

    def login(self, request: HttpRequest, user: User) -> None:
        """Log the person in after the second factor.

        Raises ImmediateHttpResponse, with a redirect to the login page, if the password has changed since the first
        step. A person who knows only the previous password can therefore not finish a login.
        """
        first_hash = request.session.pop(PASSWORD_SESSION_KEY, "")
        if not constant_time_compare(first_hash, user.get_session_auth_hash()):
            messages.error(request, "Your password has changed. Log in with the new one.")
            raise ImmediateHttpResponse(redirect("account_login"))
        super().login(request, user)

    def post_login(self, request: HttpRequest, user: User, **facts: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **facts)
        unused_accounts.record_use(request, user)
        audit.record_person_change(
            request, user, "logged_in", browser=sessions.browser_in_words(_user_agent(request))
        )
        return response

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Return the URL after a login: the admin for operators without a merchant, otherwise the portal."""
        is_operator = getattr(request.user, "is_staff", False) and access.current_membership(request) is None
        return reverse("admin:index" if is_operator else "portal_home")

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("mfa_index")

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return the reset link with the host from PORTAL_URL instead of the request's host."""
        uid, _, token = key.partition("-")
        path = reverse("account_reset_password_from_key", kwargs={"uidb36": uid, "key": token})
        return f"{settings.PORTAL_URL}{path}"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Queue a mail, so that no response waits for the mail server.

        The response time therefore does not reveal whether an account exists.
        """
        facts: dict[str, Any] = {
            "base_url": settings.PORTAL_URL,
            "signup_url": "",
            "site": settings.MFA_TOTP_ISSUER,
        }
        # Templates get test_mode from the request, but a mail that a task queues has no request.
        facts |= {"test_mode": settings.SANDBOX, "our_support": support.support_in_words()} | context
        message = self.render_mail(template_prefix, email, {"email": email} | facts)
        outbox.queue_mail(message, template_prefix, seconds=LIFETIMES.get(template_prefix))

    def send_notification_mail(
        self,
        template_prefix: str,
        user: User,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        """Record a change that a person made to their account's security, and send the person a mail about it."""
        action = RECORDED[template_prefix]
        if action in NEW_PASSWORD:
            sessions.end_other_sessions(self.request, user)
            login_limits.forgive_account(user.email)
            unused_accounts.record_use(self.request, user)
        audit.record_person_change(self.request, user, action)
        browser = sessions.browser_in_words(_user_agent(self.request))
        super().send_notification_mail(template_prefix, user, {"browser": browser} | (context or {}), email)

    def _count_attempt(self, kind: str, account: str, request: HttpRequest) -> Any:
        try:
            return login_limits.count_attempt(kind, account=account, address=address.caller_address(request))
        except login_limits.TooManyAttempts as refused:
            raise self.validation_error(REFUSALS[kind, refused.limit.per]) from None


class MfaAdapter(DefaultMFAAdapter):
    """Encrypts secrets at rest, sets the host for passkeys, and draws QR codes in the service's style."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This code is not right, or it was used already.",
        "cannot_generate_recovery_codes": "Set up a second factor first.",
    }

    def encrypt(self, text: str) -> str:
        return crypto.encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return crypto.decrypt(encrypted_text)

    def is_mfa_enabled(self, user: Any, types: Any = None) -> bool:
        """Return whether the person has a factor of the given types. The default types are an app and a passkey."""
        return bool(super().is_mfa_enabled(user, types or second_factor.FACTORS))

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        """Return the host to which passkeys belong: the host in PORTAL_URL, not the request's host."""
        return {"id": origins.host_of(settings.PORTAL_URL), "name": settings.MFA_TOTP_ISSUER}

    def generate_authenticator_name(self, user: Any, type: Any) -> str:
        """Return a passkey's default name: the browser and the system that made it."""
        return sessions.browser_in_words(_user_agent(context.request))

    def build_totp_svg(self, url: str) -> str:
        """Return the QR code of an otpauth address as SVG, always black on white."""
        return qr_codes.svg(url).decode()


def _user_agent(request: HttpRequest) -> str:
    return request.headers.get("User-Agent", "")
