"""The roles that may use each address.

The list repeats the portal's own table, so that the tests find errors in that table.
"""

from typing import NamedTuple

ALL = "owner admin developer support viewer"
NO_VIEWER = "owner admin developer support"
BUILDERS = "owner admin developer"
HELPERS = "owner admin support"
MANAGERS = "owner admin"


class Row(NamedTuple):
    """An address: its method, its roles, whether it needs a fresh proof of identity, and the form to send."""

    method: str
    roles: str
    is_sensitive: bool = False
    form: dict[str, str] = {}


ROWS: dict[str, Row] = {
    "portal_home": Row("GET", ALL),
    "portal_menu": Row("GET", ALL),
    "portal_switch": Row("POST", ALL, form={"merchant": "{merchant}"}),
    "portal_checkouts": Row("GET", ALL),
    "portal_checkouts_csv": Row("GET", NO_VIEWER),
    "portal_checkout": Row("GET", ALL),
    "portal_timeline": Row("GET", ALL),
    "portal_refund": Row(
        "POST",
        HELPERS,
        is_sensitive=True,
        form={"step": "refund", "ref": "portal_01a1ff87-30a0-763f-ad37-2dcca246cbf9", "reason": "Moved"},
    ),
    "portal_cancel": Row("POST", HELPERS, is_sensitive=True, form={"reason": "Sold out"}),
    "portal_note": Row("POST", NO_VIEWER, form={"text": "They called."}),
    "portal_customer": Row("POST", MANAGERS, is_sensitive=True),
    "portal_requests": Row("GET", ALL),
    "portal_refunds": Row("GET", ALL),
    "portal_refunds_csv": Row("GET", NO_VIEWER),
    "portal_groups": Row("GET", ALL),
    "portal_balance": Row("GET", ALL),
    "portal_balance_csv": Row("GET", NO_VIEWER),
    "portal_groups_csv": Row("GET", NO_VIEWER),
    "portal_payout_csv": Row("GET", NO_VIEWER),
    "portal_webhooks": Row("GET", ALL),
    "portal_endpoint": Row(
        "POST",
        BUILDERS,
        is_sensitive=True,
        form={"url": "http://127.0.0.1:9/other", "event_types": "checkout.voided"},
    ),
    "portal_endpoint_approve": Row(
        "POST", MANAGERS, is_sensitive=True, form={"url": "http://127.0.0.1:9/hooks"}
    ),
    "portal_endpoint_end": Row("POST", BUILDERS, is_sensitive=True),
    "portal_rotate": Row("POST", BUILDERS, is_sensitive=True),
    "portal_revoke": Row("POST", BUILDERS, is_sensitive=True),
    "portal_test_event": Row("POST", BUILDERS),
    "portal_deliveries": Row("GET", ALL),
    "portal_deliveries_close": Row("POST", NO_VIEWER),
    "portal_resend": Row("POST", NO_VIEWER, form={"which": "one", "delivery": "{delivery_uuid}"}),
    "portal_delivery": Row("GET", ALL),
    "portal_reveal": Row("POST", MANAGERS, is_sensitive=True),
    "portal_keys": Row("GET", ALL),
    "portal_key_new": Row(
        "POST", BUILDERS, is_sensitive=True, form={"name": "Another", "scopes": "checkouts:read"}
    ),
    "portal_key_rotate": Row("POST", BUILDERS, is_sensitive=True),
    "portal_key_stop": Row("POST", BUILDERS, is_sensitive=True),
    "portal_key_revoke": Row("POST", BUILDERS, is_sensitive=True),
    "portal_checklist": Row("GET", ALL),
    "portal_run_case": Row("POST", BUILDERS, form={"case": "twice"}),
    "portal_make_order": Row("POST", BUILDERS),
    "portal_rotate_and_run": Row("POST", BUILDERS, is_sensitive=True),
    "portal_team": Row("GET", ALL),
    "portal_invite": Row(
        "POST", MANAGERS, is_sensitive=True, form={"email": "another@acme.example", "role": "viewer"}
    ),
    "portal_invitation_end": Row("POST", MANAGERS, is_sensitive=True),
    "portal_role": Row("POST", MANAGERS, is_sensitive=True, form={"role": "support"}),
    "portal_remove": Row("POST", MANAGERS, is_sensitive=True),
    "portal_settings": Row("GET", ALL),
    "portal_settings_save": Row(
        "POST",
        MANAGERS,
        is_sensitive=True,
        form={"name": "Other", "brand_colour": "#112233", "country": "FR", "time_zone": "Europe/Paris"},
    ),
    "portal_preview": Row("GET", ALL),
    "portal_preview_page": Row("GET", ALL),
    "portal_logo_remove": Row("POST", MANAGERS),
    "portal_audit": Row("GET", MANAGERS),
    "portal_security": Row("GET", ALL),
}
# Addresses that do not belong to a merchant. Most of them act on the person who is signed in.
PERSONAL = ("accounts/", "join/")
