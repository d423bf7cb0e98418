import pytest

from portal import audit
from portal.mail.change_subjects import change_subject
from portal.models import AuditEntry

FACTS = {"name": "Till", "email": "sam@acme.example"}


@pytest.mark.rule("mail.outbox")
@pytest.mark.parametrize("action", audit.SENSITIVE)
def test_every_sensitive_action_has_a_subject_that_says_what_has_changed(action: str) -> None:
    words = change_subject(AuditEntry(action=action, facts=FACTS), "")
    assert words and "{" not in words


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("key_created", "new API key “Till”"),
        ("person_invited", "sam@acme.example invited"),
        ("subscription_saved", "webhook endpoint changed"),
    ],
)
def test_a_subject_names_the_key_or_the_person(action: str, words: str) -> None:
    assert change_subject(AuditEntry(action=action, facts=FACTS), "") == words
