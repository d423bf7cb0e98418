"""Fixtures: an owner who gets mail, and the mails that she gets."""

from typing import Any

import pytest
from django.core import mail

from config.lib import clock
from payments.models import Merchant
from portal.mail import outbox, trouble_mails
from portal.models import Membership, Role
from tests import factories
from tests.portal import stage


@pytest.fixture
def owner(acme: Merchant) -> Membership:
    factories.subscribe(acme, url=stage.URL, event_types=["*"])
    stage.person(acme, Role.DEVELOPER)
    return stage.person(acme, Role.OWNER, "lea@acme.example")


def look_and_send() -> list[Any]:
    mail.outbox.clear()
    trouble_mails.queue_trouble_mails(clock.now())
    outbox.send_due()
    return list(mail.outbox)
