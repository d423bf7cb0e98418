"""Helpers that read the top of a record's page in the admin."""

import html
import re

from django.db.models import Model
from django.test import Client

from config.lib import clock
from config.lib.admin import columns
from webhooks.models import Attempt, Delivery


def page_of(client: Client, row: Model) -> str:
    """Return the main part of a record's page above its fields, with its tags."""
    answer = client.get(columns.page_address(row._meta.label_lower, row.pk))
    assert answer.status_code == 200
    page = html.unescape(answer.content.decode())
    return page[page.index('<div class="heading">') : page.index("Operators’ actions on this record")]


def text_of(client: Client, row: Model) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", page_of(client, row)).split())


def main_button(client: Client, row: Model) -> str:
    """Return the words on the only filled button, or "" if no button is filled."""
    found = re.findall(r'<(?:a|button) class="button button-pen"[^>]*>(.*?)</', page_of(client, row))
    assert len(found) <= 1
    return str(found[0]) if found else ""


def address_of(row: Model) -> str:
    return columns.page_address(row._meta.label_lower, row.pk)


def attempt_of(delivery: Delivery, number: int = 1) -> Attempt:
    """Create a failed delivery attempt, and park the delivery."""
    now = clock.now()
    Delivery.objects.update(
        status="parked", attempt_count=number, next_attempt_at=None, lease_token=None, ended_at=now
    )
    return Attempt.objects.create(
        id=clock.new_id_of_same_time(delivery.pk),
        merchant=delivery.merchant,
        delivery=Delivery.objects.get(),
        number=number,
        event_type=delivery.event_type,
        started_at=now,
        ended_at=now,
        is_delivered=False,
        http_status=500,
        error_message="HTTP 500",
        duration_ms=38,
    )
