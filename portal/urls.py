"""The portal's URLs.

tests/portal/matrix.py lists who may open each URL, and its tests fail for a URL that it does not list.
"""

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from django.conf import settings
from django.urls import include, path, re_path
from django.views.decorators.http import require_POST
from django.views.generic import RedirectView

from portal.accounts.second_factor import require_second_factor
from portal.views import (
    audit,
    balance,
    cancel,
    checkouts,
    deliveries,
    frame,
    home,
    invitations,
    keys,
    passkeys,
    payouts,
    refund,
    refunds,
    requests,
    security,
    team,
    trials,
    webhooks,
)
from portal.views.orders import customer, groups, notes
from portal.views.settings import logo, page, preview

portal = [
    path("", home.show_home, name="portal_home"),
    path("/menu", frame.show_menu, name="portal_menu"),
    path("/merchant", frame.switch_merchant, name="portal_switch"),
    path("/checkouts", checkouts.list_checkouts, name="portal_checkouts"),
    path("/checkouts.csv", checkouts.export_checkouts, name="portal_checkouts_csv"),
    path("/checkouts/<uuid:checkout_uuid>", checkouts.show_checkout, name="portal_checkout"),
    path(
        "/checkouts/<uuid:checkout_uuid>/timeline.json", checkouts.download_timeline, name="portal_timeline"
    ),
    path("/checkouts/<uuid:checkout_uuid>/customer", customer.download_customer_data, name="portal_customer"),
    path("/checkouts/<uuid:checkout_uuid>/refund", refund.refund, name="portal_refund"),
    path("/checkouts/<uuid:checkout_uuid>/cancel", cancel.cancel, name="portal_cancel"),
    path("/checkouts/<uuid:checkout_uuid>/notes", notes.write_note, name="portal_note"),
    path("/requests", requests.list_requests, name="portal_requests"),
    path("/groups", groups.list_groups, name="portal_groups"),
    path("/groups.csv", groups.export_groups, name="portal_groups_csv"),
    path("/refunds", refunds.list_refunds, name="portal_refunds"),
    path("/refunds.csv", refunds.export_refunds, name="portal_refunds_csv"),
    path("/balance", balance.show_balance, name="portal_balance"),
    path("/balance.csv", balance.export_balance, name="portal_balance_csv"),
    path("/balance/payouts/<uuid:entry_uuid>.csv", payouts.export_payout, name="portal_payout_csv"),
    path("/webhooks", webhooks.show_webhooks, name="portal_webhooks"),
    path("/webhooks/endpoint", webhooks.save, name="portal_endpoint"),
    path("/webhooks/approve", webhooks.approve, name="portal_endpoint_approve"),
    path("/webhooks/end", webhooks.end, name="portal_endpoint_end"),
    path("/webhooks/rotate", webhooks.rotate, name="portal_rotate"),
    path("/webhooks/revoke", webhooks.revoke, name="portal_revoke"),
    path("/webhooks/test", webhooks.send_test, name="portal_test_event"),
    path("/deliveries", deliveries.list_deliveries, name="portal_deliveries"),
    path("/deliveries/close", deliveries.close, name="portal_deliveries_close"),
    path("/deliveries/resend", deliveries.resend, name="portal_resend"),
    path("/deliveries/<uuid:delivery_uuid>", deliveries.show_delivery, name="portal_delivery"),
    path("/deliveries/<uuid:delivery_uuid>/reveal", deliveries.reveal, name="portal_reveal"),
    path("/keys", keys.list_keys, name="portal_keys"),
    path("/keys/new", keys.create, name="portal_key_new"),
    path("/keys/<uuid:client_uuid>/rotate", keys.rotate, name="portal_key_rotate"),
    path("/keys/<uuid:client_uuid>/stop", keys.stop_previous, name="portal_key_stop"),
    path("/keys/<uuid:client_uuid>/revoke", keys.revoke, name="portal_key_revoke"),
    path("/checklist", trials.show_checklist, name="portal_checklist"),
    path("/checklist/run", trials.run_case, name="portal_run_case"),
    path("/checklist/order", trials.make_order, name="portal_make_order"),
    path("/checklist/rotate", trials.rotate_and_run, name="portal_rotate_and_run"),
    path("/team", team.show_team, name="portal_team"),
    path("/team/invite", team.invite, name="portal_invite"),
    path(
        "/team/invitations/<uuid:invitation_uuid>/end", team.withdraw_invitation, name="portal_invitation_end"
    ),
    path("/team/<uuid:membership_uuid>/role", team.change_role, name="portal_role"),
    path("/team/<uuid:membership_uuid>/remove", team.remove, name="portal_remove"),
    path("/settings", page.show_settings, name="portal_settings"),
    path("/settings/save", page.save_settings, name="portal_settings_save"),
    path("/settings/preview", preview.show_preview, name="portal_preview"),
    path("/settings/preview/page", preview.show_preview_page, name="portal_preview_page"),
    path("/settings/logo/remove", logo.remove, name="portal_logo_remove"),
    path("/audit", audit.show_audit_log, name="portal_audit"),
    path("/security", security.show_security, name="portal_security"),
]

# The pages from allauth that the service uses, under the names that allauth expects. There are no pages to sign
# up or to manage e-mail addresses. A person without a password sets the first one through a password reset.
_account_inactive = account.AccountInactiveView.as_view(extra_context={"write_to": settings.SUPPORT_EMAIL})
_set_password = RedirectView.as_view(pattern_name="account_reset_password")
accounts = [
    path("login/", account.login, name="account_login"),
    path("login/", account.login, name="account_signup"),  # never opened: allauth only needs the name
    path("login/code/", account.request_login_code, name="account_request_login_code"),
    path("login/code/confirm/", account.confirm_login_code, name="account_confirm_login_code"),
    path("logout/", require_POST(account.logout), name="account_logout"),
    path("inactive/", _account_inactive, name="account_inactive"),
    path("reauthenticate/", account.reauthenticate, name="account_reauthenticate"),
    path("password/change/", require_second_factor(account.password_change), name="account_change_password"),
    path("password/set/", _set_password, name="account_set_password"),
    path("password/reset/", account.password_reset, name="account_reset_password"),
    path("password/reset/done/", account.password_reset_done, name="account_reset_password_done"),
    path(
        "password/reset/key/done/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("2fa/", require_second_factor(security.show_account_security), name="mfa_index"),
    path("2fa/authenticate/", mfa.authenticate, name="mfa_authenticate"),
    path("2fa/reauthenticate/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("2fa/totp/activate/", security.ActivateTotp.as_view(), name="mfa_activate_totp"),
    path("2fa/totp/deactivate/", require_second_factor(totp.deactivate_totp), name="mfa_deactivate_totp"),
    path("login/passkey/", passkeys.LogIn.as_view(), name="mfa_login_webauthn"),
    path("2fa/passkeys/add/", passkeys.Add.as_view(), name="mfa_add_webauthn"),
    path(
        "2fa/passkeys/reauthenticate/", passkeys.Reauthenticate.as_view(), name="mfa_reauthenticate_webauthn"
    ),
    path(
        "2fa/passkeys/<int:pk>/remove/",
        require_second_factor(passkeys.Remove.as_view()),
        name="mfa_remove_webauthn",
    ),
    path(
        "2fa/codes/",
        require_second_factor(recovery_codes.view_recovery_codes),
        name="mfa_view_recovery_codes",
    ),
    path(
        "2fa/codes/new/",
        require_second_factor(recovery_codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "2fa/codes/download/",
        require_second_factor(recovery_codes.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("sessions/", require_second_factor(security.end_sessions), name="usersessions_list"),
]

urlpatterns = [
    path("portal", include(portal)),
    path("join/<str:token>", require_second_factor(invitations.join), name="portal_join"),
    path("accounts/", include(accounts)),
]
