"""The facts in the audit log's entries, in the words that its page shows."""

from collections.abc import Callable, Mapping
from typing import Any

from portal.models import AuditEntry, Role
from portal.trials.cases import CASES

Facts = Mapping[str, Any]
SETTINGS = {
    "brand_colour": "colour",
    "country": "country",
    "name": "name",
    "opt_in_enabled": "marketing opt-in",
    "privacy_url": "privacy",
    "provider_account": "account at the provider",
    "return_hosts": "hosts to return to",
    "shop_url": "shop’s address",
    "support_url": "help",
    "terms_url": "terms",
    "time_zone": "time zone",
    "unpaid_minutes": "minutes to pay",
}


def facts_in_words(entry: AuditEntry) -> str:
    """Return the facts of a log entry in words, or "" if the text for the action is enough."""
    words = _WORDS.get(entry.action)
    return words(entry.facts) if words and entry.facts else ""


def _role_words(facts: Facts) -> str:
    return Role(facts["role"]).in_words


def _endpoint_words(facts: Facts) -> str:
    types = facts["event_types"]
    waits = "" if facts.get("is_approved", True) else ", not approved for personal data"
    return f"{facts['url']}, {'all events' if types == ['*'] else ', '.join(types)}{waits}"


def _resent_words(facts: Facts) -> str:
    left_out = facts.get("left_out")
    return f"{facts['sent']} sent" + (f", {left_out} left out" if left_out else "")


def _file_words(facts: Facts) -> str:
    filters = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in facts.get("filters", {}).items()
    )
    details = facts.get("reference") or filters
    return f"{str(facts['file']).capitalize()}{f': {details}' if details else ''}"


def _case_words(facts: Facts) -> str:
    case = CASES.get(facts["case"])
    return case.title if case else str(facts["case"])


def _field_words(facts: Facts) -> str:
    return ", ".join(SETTINGS.get(name, name) for name in facts["fields"]).capitalize()


def _from_pattern(pattern: str) -> Callable[[Facts], str]:
    return lambda facts: pattern.format(**facts)


_KEY, _ORDER, _EVENT = (
    _from_pattern("{name}, {client_id}"),
    _from_pattern("Order {order}"),
    _from_pattern("Event {event}"),
)
_WORDS: dict[str, Callable[[Facts], str]] = {
    "subscription_saved": _endpoint_words,
    "endpoint_approved": _from_pattern("{url}"),
    "key_created": _KEY,
    "key_rotated": _KEY,
    "key_secret_stopped": _KEY,
    "key_revoked": _KEY,
    "person_invited": lambda facts: f"{facts['email']}, as {_role_words(facts)}",
    "invitation_taken_back": _from_pattern("{email}"),
    "invitation_accepted": lambda facts: f"{facts['email']}, as {_role_words(facts)}",
    "role_changed": lambda facts: f"{facts['email']} is {_role_words(facts)}",
    "person_removed": _from_pattern("{email}"),
    "email_changed": _from_pattern("{before} is now {email}"),
    "account_closed": _from_pattern("{email}"),
    "account_opened": _from_pattern("{email}"),
    "second_factor_deleted": _from_pattern("{email}"),
    "refund": _from_pattern("Order {order}, reference {ref}"),
    "note_written": _ORDER,
    "cancelled": _ORDER,
    "test_event_sent": _EVENT,
    "personal_data_revealed": _EVENT,
    "test_order_made": _ORDER,
    "trial_begun": _case_words,
    "deliveries_closed": _from_pattern("{closed} closed"),
    "deliveries_resent": _resent_words,
    "customer_exported": _from_pattern("Checkout {checkout}"),
    "settings_changed": _field_words,
    "opt_in_wording_written": _from_pattern("Version {version}, {language}"),
    "exported": _file_words,
    "logged_in": _from_pattern("{browser}"),
    "sessions_ended": _from_pattern("{sessions} ended"),
}
