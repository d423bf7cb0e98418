"""The portal's addresses. tests/portal/matrix.py says for each who may, and fails for one that it does not name."""

from allauth.account import views as account
from django.urls import include, path
from django.views.decorators.http import require_POST

from portal.views import (
    audit,
    balance,
    checklist,
    checkouts,
    deliveries,
    frame,
    home,
    invitations,
    keys,
    refund,
    settings,
    team,
    webhooks,
)

portal = [
    path("", home.home, name="portal_home"),
    path("/menu", frame.menu, name="portal_menu"),
    path("/merchant", frame.switch, name="portal_switch"),
    path("/checkouts", checkouts.listed, name="portal_checkouts"),
    path("/checkouts.csv", checkouts.exported, name="portal_checkouts_csv"),
    path("/checkouts/<uuid:checkout_uuid>", checkouts.detail, name="portal_checkout"),
    path("/checkouts/<uuid:checkout_uuid>/timeline.json", checkouts.timeline_json, name="portal_timeline"),
    path("/checkouts/<uuid:checkout_uuid>/refund", refund.refund, name="portal_refund"),
    path("/balance", balance.listed, name="portal_balance"),
    path("/balance.csv", balance.exported, name="portal_balance_csv"),
    path("/webhooks", webhooks.configured, name="portal_webhooks"),
    path("/webhooks/endpoint", webhooks.save, name="portal_endpoint"),
    path("/webhooks/end", webhooks.end, name="portal_endpoint_end"),
    path("/webhooks/rotate", webhooks.rotate, name="portal_rotate"),
    path("/webhooks/revoke", webhooks.revoke, name="portal_revoke"),
    path("/webhooks/test", webhooks.send_test, name="portal_test_event"),
    path("/webhooks/signing.py", webhooks.signing_code, name="portal_signing"),
    path("/deliveries", deliveries.listed, name="portal_deliveries"),
    path("/deliveries/resend", deliveries.resend, name="portal_resend"),
    path("/deliveries/<uuid:delivery_uuid>", deliveries.detail, name="portal_delivery"),
    path("/deliveries/<uuid:delivery_uuid>/reveal", deliveries.reveal, name="portal_reveal"),
    path("/keys", keys.listed, name="portal_keys"),
    path("/keys/new", keys.create, name="portal_key_new"),
    path("/keys/<uuid:client_uuid>/rotate", keys.rotate, name="portal_key_rotate"),
    path("/keys/<uuid:client_uuid>/stop", keys.stop_previous, name="portal_key_stop"),
    path("/keys/<uuid:client_uuid>/revoke", keys.revoke, name="portal_key_revoke"),
    path("/checklist", checklist.ticked, name="portal_checklist"),
    path("/team", team.listed, name="portal_team"),
    path("/team/invite", team.invite, name="portal_invite"),
    path("/team/invitations/<uuid:invitation_uuid>/end", team.take_back, name="portal_invitation_end"),
    path("/team/<uuid:membership_uuid>/role", team.change, name="portal_role"),
    path("/team/<uuid:membership_uuid>/remove", team.remove, name="portal_remove"),
    path("/settings", settings.shown, name="portal_settings"),
    path("/settings/save", settings.changed, name="portal_settings_save"),
    path("/settings/opt-in", settings.opt_in_wording, name="portal_opt_in"),
    path("/audit", audit.listed, name="portal_audit"),
    path("/security", frame.menu, name="portal_security"),
]

urlpatterns = [
    path("portal", include(portal)),
    path("join/<str:token>", invitations.join, name="portal_join"),
    path("accounts/login/", account.login, name="account_login"),
    path("accounts/logout/", require_POST(account.logout), name="account_logout"),
    path("accounts/reauthenticate/", account.reauthenticate, name="account_reauthenticate"),
    path("accounts/inactive/", account.account_inactive, name="account_inactive"),
]
