"""The subjects of mails about sensitive changes."""

from portal.models import AuditEntry

# For each sensitive action, the subject as a pattern for the facts of its log entry.
_SUBJECTS = {
    "subscription_saved": "webhook endpoint changed",
    "endpoint_approved": "webhook endpoint approved for personal data",
    "subscription_ended": "webhook endpoint removed",
    "secret_rotated": "signing secret rotated",
    "secret_revoked": "old signing secret stopped",
    "key_created": "new API key “{name}”",
    "key_rotated": "new secret for the API key “{name}”",
    "key_secret_stopped": "old secret of the API key “{name}” stopped",
    "key_revoked": "API key “{name}” revoked",
    "person_invited": "{email} invited",
    "invitation_taken_back": "invitation of {email} withdrawn",
    "invitation_accepted": "{email} joined the team",
    "role_changed": "role of {email} changed",
    "person_removed": "{email} removed from the team",
    "email_changed": "e-mail address of {email} changed",
    "account_closed": "account of {email} closed",
    "account_opened": "account of {email} opened again",
    "second_factor_deleted": "second factor of {email} removed",
    "personal_data_revealed": "personal data viewed",
    "customer_exported": "a customer’s data downloaded",
    "logo_changed": "logo changed",
    "logo_removed": "logo removed",
}


def change_subject(entry: AuditEntry, text: str) -> str:
    """Return the subject of the mail about a sensitive action, without the merchant's name.

    `text` is the text of the mail. For changed settings, it names them, such as "Changed the shop’s address".
    """
    if entry.action == "settings_changed":
        return f"{text.removeprefix('Changed ')} changed"
    return _SUBJECTS[entry.action].format(**entry.facts)
