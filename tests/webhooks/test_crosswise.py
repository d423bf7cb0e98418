"""Verbs that meet at a subscription's rows, on real connections."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction

from config.lib import clock
from payments.models import Merchant
from tests.webhooks.story import subscribe
from webhooks import outbox, subscriptions
from webhooks.models import EventType, Subscription


@pytest.mark.django_db(transaction=True)
def test_ending_a_subscription_never_waits_crosswise_for_a_void(monkeypatch: pytest.MonkeyPatch) -> None:
    acme, checkout, now = subscribe(), uuid4(), clock.now()
    until = now + timedelta(seconds=100)
    outbox.emit(acme.merchant, EventType.AUTHORIZED, {}, at=now, checkout_uuid=checkout, valid_until=until)
    locked, go_on, failures = threading.Event(), threading.Event(), []
    lock = subscriptions._locked

    def slowly(merchant: Merchant) -> Subscription:
        found = lock(merchant)
        locked.set()
        go_on.wait(5)
        return found

    def end() -> None:
        try:
            subscriptions.end(acme.merchant)
        except Exception as failure:
            failures.append(failure)
        connection.close()

    monkeypatch.setattr(subscriptions, "_locked", slowly)
    ending = threading.Thread(target=end)
    ending.start()
    assert locked.wait(5)
    with transaction.atomic():  # a cancel, or a lapse
        outbox.supersede(checkout, now)
        outbox.emit(acme.merchant, EventType.VOIDED, {}, at=now, checkout_uuid=checkout)
        go_on.set()
        ending.join(0.3)  # it now waits for the superseded delivery
    ending.join(5)
    assert not ending.is_alive() and failures == []
