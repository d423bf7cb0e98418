"""The kinds of e-mail in words, for operators. There are mails to a merchant's people, and mails about a login.

For a mail about a login, the kind is the path of its template, or a name in portal/operator_changes.py.
"""

# What each kind of mail is about. The first entries are the kinds in `outbox.SUBJECTS`.
WORDS: dict[str, str] = {
    "sensitive_change": "Sensitive change",
    "keys_of_person": "Keys that a former member still knows",
    "invitation": "Invitation to a team",
    "endpoint_failing": "Failing endpoint",
    "deliveries_parked": "Parked deliveries",
    "refund_failed": "Failed refund",
    "refund_returned": "Returned refund",
    "holds_lost": "Lapsed holds",
    "suspended": "Payments stopped",
    "resumed": "Payments resumed",
    "dispute_opened": "New dispute",
    "dispute_decided": "Decided dispute",
    "email_changed_by_operator": "Email address changed by an operator",
    "factor_removed_by_operator": "Second factor removed by an operator",
    "account/email/account_disabled": "Account disabled",
    "account/email/account_unused": "Account that is not used",
    "account/email/login_code": "Code to log in",
    "account/email/password_changed": "Password changed",
    "account/email/password_reset": "Password reset",
    "account/email/password_reset_key": "Link to choose a new password",
    "account/email/unknown_account": "No account with this address",
    "mfa/email/recovery_codes_generated": "New recovery codes",
    "mfa/email/totp_activated": "Authenticator app set up",
    "mfa/email/totp_deactivated": "Authenticator app removed",
    "mfa/email/webauthn_added": "Passkey added",
    "mfa/email/webauthn_removed": "Passkey removed",
}


def kind_in_words(kind: str) -> str:
    """Return what a kind of mail is about. If a kind has no words, return its name."""
    return WORDS.get(kind) or kind.rpartition("/")[2].replace("_", " ").capitalize()
