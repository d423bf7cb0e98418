"""The audit log: each action by a merchant's people and keys and by operators, with its time and its origin.

Rule portal.audit.
"""

from typing import Any

from django.db import transaction
from django.http import HttpRequest

from config.lib.web import address, request_id
from payments.cause import Caller
from payments.models import Merchant
from portal import last_writes
from portal.mail import outbox
from portal.models import AuditEntry, Membership, User

# The actions that are also mailed to the owners, with the text for each.
SENSITIVE = {
    "subscription_saved": "Changed the webhook endpoint",
    "endpoint_approved": "Approved the webhook endpoint for personal data",
    "subscription_ended": "Removed the webhook endpoint",
    "secret_rotated": "Rotated the signing secret",
    "secret_revoked": "Stopped the old signing secret",
    "key_created": "Made an API key",
    "key_rotated": "Rotated an API key’s secret",
    "key_secret_stopped": "Stopped an API key’s old secret",
    "key_revoked": "Revoked an API key",
    "person_invited": "Invited a person",
    "invitation_taken_back": "Withdrew an invitation",
    "invitation_accepted": "Joined the team",
    "role_changed": "Changed a person’s role",
    "person_removed": "Removed a person from the team",
    "email_changed": "Changed a person’s e-mail address",
    "account_closed": "Closed a person’s account",
    "account_opened": "Opened a person’s account again",
    "second_factor_deleted": "Removed a person’s second factor",
    "personal_data_revealed": "Looked at personal data",
    "customer_exported": "Downloaded a customer’s data",
    "logo_changed": "Changed the logo that customers see",
    "logo_removed": "Removed the logo that customers see",
}
# All actions, with the text for each.
ACTIONS: dict[str, str] = {
    **SENSITIVE,
    "refund": "Refunded a checkout",
    "note_written": "Wrote a note on a checkout",
    "cancelled": "Cancelled a checkout",
    "test_event_sent": "Sent a test event",
    "test_order_made": "Made a test order",
    "trial_begun": "Ran a case of the checklist",
    "trial_stopped": "Stopped a case of the checklist",
    "deliveries_closed": "Closed parked deliveries",
    "deliveries_resent": "Sent deliveries again",
    "settings_changed": "Changed the settings",
    "opt_in_wording_written": "Wrote a new opt-in wording",
    "payments_stopped": "Stopped payments",
    "payments_resumed": "Resumed payments",
    "exported": "Exported a file",
    "logged_in": "Logged in",
    "password_changed": "Changed their password",
    "password_reset": "Reset their password",
    "second_factor_added": "Set up an authenticator app",
    "second_factor_removed": "Removed their authenticator app",
    "passkey_added": "Added a passkey",
    "passkey_removed": "Removed a passkey",
    "second_factor_locked": "Entered the right password, then failed the second factor too often",
    "recovery_codes_made": "Made new recovery codes",
    "sessions_ended": "Ended other sessions",
    "account_disabled": "Account disabled after 90 days without a login",
    "account_enabled": "Enabled their unused account again",
}
# The settings that identify the merchant to customers, or that decide where customers or money go. The mail to
# the owners contains these texts. Rule portal.sensitive_settings.
SENSITIVE_SETTINGS = {
    "name": "the name that customers see",
    "shop_url": "the shop’s address",
    "support_url": "the address of the help page",
    "terms_url": "the address of the terms",
    "privacy_url": "the address of the privacy page",
    "provider_account": "the account at the provider, to which money goes",
    "return_hosts": "the hosts that customers may return to",
}


def record(request: HttpRequest | None, membership: Membership, action: str, **facts: Any) -> AuditEntry:
    """Write a person's action into the audit log. If the action is sensitive, queue a mail to the owners.

    `request` is None in a task. Call this in the transaction of the change. `facts` holds ids and names,
    never a secret.
    """
    return _write_entry(
        request, AuditEntry(merchant=membership.merchant, user=membership.user), action, facts
    )


def record_key_action(request: HttpRequest, caller: Caller, action: str, **facts: Any) -> AuditEntry:
    """Write an API key's action into the audit log, as `record` does for a person."""
    entry = AuditEntry(merchant=caller.merchant, client_id=caller.client_uuid)
    return _write_entry(request, entry, action, facts)


def record_operator_action(request: Any, merchant: Merchant, action: str, **facts: Any) -> AuditEntry:
    """Write an operator's action into the merchant's audit log, as `record` does for a person."""
    entry = AuditEntry(merchant=merchant, user=request.user, is_operators=True)
    return _write_entry(request, entry, action, facts)


def _write_entry(
    request: HttpRequest | None, entry: AuditEntry, action: str, facts: dict[str, Any]
) -> AuditEntry:
    entry.action, entry.facts = action, facts
    # A merchant does not see the address from which an operator acted.
    if request is not None and not entry.is_operators:
        entry.address = address.caller_address(request) or None
    entry.request_id = request_id.current_id()
    with transaction.atomic(savepoint=True):
        entry.save()
        last_writes.record_write(entry.merchant_id)
        if mail_text := _owners_mail_text(action, facts):
            outbox.queue_once(
                entry.merchant, "sensitive_change", key=str(entry.pk), entry=str(entry.pk), what=mail_text
            )
    return entry


def _owners_mail_text(action: str, facts: dict[str, Any]) -> str:
    """Return the text of the mail to the owners about an action, or "" if the action is not mailed."""
    if action == "settings_changed":
        changed = [SENSITIVE_SETTINGS[name] for name in facts["fields"] if name in SENSITIVE_SETTINGS]
        return f"Changed {', '.join(changed)}" if changed else ""
    return SENSITIVE.get(action, "")


def record_person_change(request: HttpRequest | None, user: User, action: str, **facts: Any) -> None:
    """Record an event in a person's account, such as a login, in the audit log of each of the person's merchants.

    `request` is None if a task made the change.
    """
    for membership in Membership.objects.filter(user=user).select_related("merchant", "user"):
        record(request, membership, action, **facts)
