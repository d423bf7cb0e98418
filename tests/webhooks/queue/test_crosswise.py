"""Verbs that meet at a subscription's rows, on real connections."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

import pytest
from django.db import connection, transaction

from config.lib import clock
from payments.models import Merchant
from tests import factories
from tests.webhooks.story import subscribe
from webhooks import outbox, subscriptions
from webhooks.models import EventType, Subscription

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 6
Returned = TypeVar("Returned")


def at_once(verb: Callable[[], Returned]) -> list[Returned]:
    """Let so many call it at the same moment, each on a connection of its own; return what they got."""
    start = threading.Barrier(MANY)

    def call(_: int) -> Returned:
        start.wait(10)
        try:
            return verb()
        finally:
            connection.close()

    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(call, range(MANY)))


@pytest.mark.rule("subscription.one")
def test_first_registrations_at_once_make_one_subscription_whose_secret_one_of_them_is_told() -> None:
    acme = Merchant.objects.create(name="Acme")
    told = at_once(lambda: factories.subscribe(acme, url="http://127.0.0.1:9/hooks", event_types=["*"]))
    (secret,) = [registered.signing_secret for registered in told if registered.signing_secret]
    assert [kept.secret for kept in Subscription.objects.get(merchant=acme).secrets.all()] == [secret]


def test_of_rotations_at_once_two_are_made_and_the_others_told_when() -> None:
    acme = subscribe()

    def rotate() -> str | None:
        try:
            return subscriptions.rotate(acme.merchant).signing_secret
        except subscriptions.RotationInProgress as refused:
            assert len(refused.until) == 2
            return None

    told = [secret for secret in at_once(rotate) if secret]
    assert len(told) == len(set(told)) == 2
    signing = {
        kept.secret for kept in acme.secrets.all() if not kept.expires_at or kept.expires_at > clock.now()
    }
    assert len(signing) == 3 and signing > set(told)


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
        outbox.supersede_all({checkout: now})
        outbox.emit(acme.merchant, EventType.VOIDED, {}, at=now, checkout_uuid=checkout)
        go_on.set()
        ending.join(0.3)  # it now waits for the superseded delivery
    ending.join(5)
    assert not ending.is_alive() and failures == []
