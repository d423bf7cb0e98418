"""The badges that only operators see."""

from typing import Any

import pytest

from config.lib import clock
from portal.backoffice import badges
from portal.badges import Badge
from portal.models import OutboundEmail


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "badge"),
    [
        ({"next_try_at": True}, badges.EMAIL_WAITING),
        ({"sent_at": True}, badges.EMAIL_SENT),
        ({"dropped_at": True}, badges.EMAIL_DROPPED),
        ({}, badges.EMAIL_NOT_NEEDED),
    ],
)
def test_an_email_has_the_badge_of_its_state(fields: dict[str, Any], badge: Badge) -> None:
    assert badges.of_email(OutboundEmail(**dict.fromkeys(fields, clock.now()))) == badge
