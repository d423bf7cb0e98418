"""The texts with which the audit log's page describes an entry."""

from typing import Any

import pytest

from portal import audit, audit_words
from portal.models import AuditEntry

TOLD: list[tuple[str, dict[str, Any], str]] = [
    (
        "subscription_saved",
        {"url": "https://a.example", "event_types": ["*"]},
        "https://a.example, all events",
    ),
    (
        "subscription_saved",
        {"url": "https://a.example", "event_types": ["a", "b"]},
        "https://a.example, a, b",
    ),
    ("key_created", {"name": "Till", "client_id": "client_1"}, "Till, client_1"),
    ("person_invited", {"email": "lea@a.example", "role": "admin"}, "lea@a.example, as an admin"),
    ("role_changed", {"email": "lea@a.example", "role": "viewer"}, "lea@a.example is a viewer"),
    ("refund", {"checkout": "c", "order": "A-1", "ref": "R-1"}, "Order A-1, reference R-1"),
    ("trial_begun", {"case": "twice", "trial": "t"}, "Handle an event twice"),
    ("deliveries_resent", {"sent": 2, "left_out": 1}, "2 sent, 1 left out"),
    ("deliveries_resent", {"event": "e", "sent": 1}, "1 sent"),
    ("settings_changed", {"fields": ["brand_colour", "unpaid_minutes"]}, "Colour, minutes to pay"),
    ("exported", {"file": "payout", "reference": "P-1"}, "Payout: P-1"),
    ("exported", {"file": "checkouts", "filters": {"at_least": "20"}}, "Checkouts: at least 20"),
    ("exported", {"file": "refunds", "filters": {}}, "Refunds"),
    ("secret_rotated", {}, ""),
    ("logo_changed", {"bytes": 4000}, ""),
    ("no_longer_known", {"name": "x"}, ""),
]


@pytest.mark.rule("portal.audit")
@pytest.mark.parametrize(("action", "facts", "words"), TOLD)
def test_facts_are_shown_in_words(action: str, facts: dict[str, Any], words: str) -> None:
    assert audit_words.facts_in_words(AuditEntry(action=action, facts=facts)) == words


def test_each_described_action_exists() -> None:
    assert audit_words._WORDS.keys() <= audit.ACTIONS.keys()
