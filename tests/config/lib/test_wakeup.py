"""Wake-ups through a real Redis. They are sent after the commit, and a Redis that does not answer delays no commit."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
import redis
from celery import Celery
from django.conf import settings
from django.db import connection, transaction

from config.lib import wakeup
from tests.config.local.living import within

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def is_queued() -> Iterator[Callable[[str], bool]]:
    """Yield a function that returns whether a task is in the workers' queue."""
    with redis.Redis.from_url(settings.REDIS_URL) as queue:
        yield lambda name: any(name.encode() in message for message in queue.lrange("celery", 0, -1))


@pytest.fixture
def silent() -> Iterator[Celery]:
    """Yield an app whose broker accepts the connection but does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Celery(broker=f"redis://127.0.0.1:{listening.getsockname()[1]}")


@pytest.mark.rule("pump.wake_up")
def test_a_wake_up_is_sent_only_after_the_commit(is_queued: Callable[[str], bool]) -> None:
    name = f"tests.wake.{uuid4()}"
    with transaction.atomic():
        wakeup.wake_after_commit(name)
        time.sleep(0.2)
        assert not is_queued(name)
    assert within(10, lambda: is_queued(name))


def test_a_wake_up_is_not_sent_after_a_rollback(is_queued: Callable[[str], bool]) -> None:
    undone, done = f"tests.wake.{uuid4()}", f"tests.wake.{uuid4()}"
    with transaction.atomic():
        wakeup.wake_after_commit(undone)
        transaction.set_rollback(True)
    wakeup.wake_after_commit(done)
    assert within(10, lambda: is_queued(done))
    assert not is_queued(undone)


@pytest.mark.rule("pump.wake_up")
def test_a_wake_up_does_not_wait_for_a_silent_redis(silent: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    # Make the process start a new sender, because this test makes its sender hang.
    monkeypatch.setattr(wakeup, "_sender", None)
    monkeypatch.setattr(wakeup, "current_app", silent)

    def ask() -> None:
        wakeup.wake_after_commit("tests.wake.nobody")
        connection.close()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(5)
    assert not asking.is_alive()
    time.sleep(0.5)
    assert wakeup._sender is not None and wakeup._sender.is_alive()
