import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from celery import signals
from celery.beat import Service

from checkout import cancellations, refunds
from checkout.models import Checkout
from config import celery
from config.celery import app
from config.lib.process import liveness
from config.schedule import FINISH_OPERATIONS
from payments.models import Operation
from payments.provider import Outcome, Verdict
from payments.providers.sandbox.adapter import SandboxProvider
from tests import factories
from tests.factories import CAUSE
from tests.waiting import wait_for
from webhooks import delivery_sender


def test_expired_webhook_data_is_deleted_every_hour() -> None:
    hourly = {entry["task"] for entry in app.conf.beat_schedule.values() if entry["schedule"] == 3600.0}
    assert {"webhooks.tasks.delete_personal", "webhooks.tasks.delete_old_events"} <= hourly


@pytest.mark.django_db  # newer Django versions use the database when they check the models
def test_beat_starts_exactly_our_tasks() -> None:
    app.loader.import_default_modules()
    planned = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert planned == {name for name in app.tasks if not name.startswith("celery.")}


def test_a_received_message_is_not_returned_over_a_lost_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that has lost its connection does not try to return a message to Redis.

    Earlier, a worker crashed when it tried this.
    """

    def gone(*_: object) -> None:
        raise redis.exceptions.ConnectionError("gone")

    connection = app.connection()
    connection.SimpleQueue("taken").put("a wake-up")
    taken = connection.default_channel.basic_get
    wait_for(lambda: taken("taken"))
    monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", gone)
    connection.collect()
    connection.close()
    assert [line.message for line in caplog.records] == []


def test_beat_ends_even_if_the_exit_of_its_signal_handler_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beat ends even if the exception that its signal handler raises is lost.

    Earlier, beat then continued to run, but sent no tasks.
    """
    turns = iter(["its next"])

    def signalled(*_: object, **__: object) -> None:
        """Do the same as Celery's handler of SIGTERM, but without SystemExit, as if a finalizer dropped it."""
        beat.sync()
        # `watch` now succeeds once, and raises StopIteration at the next call.
        monkeypatch.setattr(liveness, "watch", lambda: next(turns))

    monkeypatch.setattr(liveness, "watch", lambda: None)
    monkeypatch.setattr(signals.beat_init, "receivers", [])
    schedule = str(tmp_path / "schedule")
    beat = Service(app, scheduler_cls=celery.Scheduler, schedule_filename=schedule, remote_control=False)
    monkeypatch.setattr(beat.scheduler, "producer", None)
    monkeypatch.setattr(beat.scheduler, "apply_entry", signalled)
    beat.start()
    assert not list(turns), "it has turned once more, and ended"


@pytest.mark.django_db(transaction=True)
class TestTheTickers:
    """Timers in the worker start a pump. While Redis is down, no message can start one."""

    @pytest.fixture
    def silence(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
        """Make the bank wait with its answer to a refund until the yielded event is set."""
        speaks = threading.Event()

        def refund(*_: object) -> Outcome:
            speaks.wait(10)
            return Outcome(Verdict.UNKNOWN)

        monkeypatch.setattr(SandboxProvider, "refund", refund)
        yield speaks
        speaks.set()

    @pytest.fixture
    def ticking(self, silence: threading.Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Run the tickers of the pump that finishes operations, at shorter intervals than usual."""
        app.loader.import_default_modules()
        monkeypatch.setattr(delivery_sender, "wake", lambda: None)
        for name, value in {
            "CHECK_SECONDS": 0.02,
            "RESTART_SECONDS": 0.05,
            "PUMPS": (FINISH_OPERATIONS,),
        }.items():
            monkeypatch.setattr(celery, name, value)
        celery._start_tickers()
        yield
        silence.set()
        signals.worker_shutting_down.send(sender=None)
        for thread in threading.enumerate():
            if thread.name.startswith("ticker "):
                thread.join(10)
        celery._is_ending.clear()

    @pytest.mark.rule("pump.kinds")
    def test_release_a_hold_while_the_bank_is_silent_about_refunds(
        self, captured: Checkout, pay: Callable[..., Checkout], ticking: None
    ) -> None:
        refunds.accept(captured.merchant, captured.pk, ref="r-1", cause=CAUSE)
        wait_for(Operation.objects.filter(kind="refund", state="in_flight").exists)
        held = pay(factories.checkout(captured.merchant))
        cancellations.cancel(held.merchant, held.pk, cause=CAUSE)
        wait_for(Operation.objects.filter(kind="void", state="succeeded").exists)
        assert Operation.objects.get(kind="refund").state == "in_flight", "the bank is silent yet"
