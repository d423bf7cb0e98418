"""The number of rows that wait for each pump, and when this work counts as late."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client

from config.lib import clock
from hosted_page.models import SmsMessage
from payments.models import Merchant
from portal.backoffice import ages, queues
from portal.backoffice.order import format_utc
from portal.models import OutboundEmail


def test_the_page_says_when_each_queue_is_late() -> None:
    said = {
        row[2]: queues.LATE_AFTER if row[2] == queues.USUAL_PATIENCE else ages.in_words(row[2])
        for row in queues.TABLE
    }
    assert all(f"after {words}" in queues.LATE_MEANS for words in said.values())


@pytest.mark.django_db
def test_the_page_shows_the_date_since_which_a_row_is_due(operator: Client, acme: Merchant) -> None:
    since = clock.now() - timedelta(days=2)
    OutboundEmail.objects.create(kind="login", key="1", next_try_at=since)
    OutboundEmail.objects.update(created_at=since)
    page = operator.get("/admin/operations/").content.decode()
    row = page[page.index("Emails to send</th>") :].partition("</tr>")[0]
    assert "2 days" in row and format_utc(since) in row


@pytest.mark.django_db
@pytest.mark.parametrize("title", ["Texts to send", "Emails to send"])
def test_a_failed_attempt_does_not_make_the_oldest_row_younger(title: str, acme: Merchant) -> None:
    now = clock.now()
    OutboundEmail.objects.create(kind="login", key="1", next_try_at=now + timedelta(minutes=30))
    OutboundEmail.objects.update(created_at=now - timedelta(minutes=40))
    SmsMessage.objects.create(
        kind="code",
        merchant=acme,
        checkout_uuid=uuid4(),
        subject=uuid4(),
        address_digest="",
        created_at=now - timedelta(minutes=40),
        due_at=now + timedelta(seconds=5),
        ends_at=now + timedelta(minutes=5),
    )
    (queue,) = [queue for queue in queues.read_queues(now) if queue.title == title]
    assert queue.since == now - timedelta(minutes=40) and queue.verdict == queues.LATE
