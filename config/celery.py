"""Configures Celery, and starts each pump every second even if beat or Redis fails.

Normally, beat starts the pumps. If a pump has not started for two seconds, the workers start it directly,
without beat and Redis. Rules pump.beat, pump.redis.
"""

import gc
import logging.config
import os
import threading
import time
from typing import Any

import structlog
from celery import Celery, Task, signals
from celery.beat import PersistentScheduler
from django.conf import settings
from django.db import close_old_connections
from kombu.transport.redis import Channel
from prometheus_client import Counter, Gauge

from config import startup_checks, version
from config.lib.process import liveness, sampling
from config.schedule import CALENDAR, DELIVER_DUE, FINISH_OPERATIONS, HOURLY, PUMPS
from config.variables import startup
from hosted_page.sms import senders
from payments import restore_guard

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
log = structlog.get_logger("config.celery")


class OpenTask(Task):
    """A task that does nothing while the database is closed, even if called directly. Rule restore.closed."""

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        if restore_guard.is_closed():
            return None
        return super().__call__(*arguments, **more)


app = Celery("checkout", task_cls=OpenTask)
app.on_configure.connect(startup.load_settings)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = ["config.probes"]
app.autodiscover_tasks()
# A worker must not return unstarted tasks to the queue when it loses the connection to Redis. The return would
# fail, and the error would end the worker.
Channel.do_restore = False

app.conf.beat_schedule = {
    **{name: {"task": name, "schedule": 1.0, "options": {"expires": 1}} for name in PUMPS},
    **{name: {"task": name, "schedule": 3600.0, "options": {"expires": 600}} for name in HOURLY},
    **{
        name: {"task": name, "schedule": when, "options": {"expires": 600}}
        for name, (_, when) in CALENDAR.items()
    },
}

SILENCE_SECONDS = 2.0  # if a pump has not started for this many seconds, its ticker starts it
RESTART_SECONDS = 1.0  # seconds between two starts by the ticker, while beat does not start the pump
CHECK_SECONDS = 0.25  # seconds between two checks by the ticker
_started_at: dict[str, float] = dict.fromkeys(PUMPS, 0.0)
_is_ending = threading.Event()

STARTED = Counter(
    "checkout_pump_starts", "Starts of a pump, by beat, a wake-up or a worker itself", ["pump", "by"]
)
BEAT = Gauge("checkout_beat_last_sign_timestamp_seconds", "When a worker last heard from beat")
TICKERS = Gauge(
    "checkout_ticker_silence_seconds", "For how long a worker's thread has been stuck", ["ticker"]
)


class Scheduler(PersistentScheduler):
    """Beat's scheduler, which records at each tick that its thread is alive."""

    def tick(self, *arguments: Any, **more: Any) -> Any:
        """Send the due tasks, as Celery's scheduler does; return the seconds until the next task is due.

        Raises SystemExit if the handler of a stop signal has closed the schedule file. The handler raises
        SystemExit too, but if the signal arrives during a finalizer, Python ignores this exception.
        """
        liveness.watch()
        try:
            return super().tick(*arguments, **more)
        except ValueError as error:
            if "closed shelf" not in str(error):
                raise
            raise SystemExit from None


app.conf.beat_scheduler = "config.celery:Scheduler"


@signals.setup_logging.connect
def _set_up_logging(**_: Any) -> None:
    """Set up settings.LOGGING. If this signal has a receiver, Celery does not change the logging."""
    logging.config.dictConfig(settings.LOGGING)


@signals.task_prerun.connect
def _record_task_start(task: Any = None, **_: Any) -> None:
    if task is None:
        return
    is_by_beat = bool((task.request.headers or {}).get("celery_beat_task"))
    if is_by_beat:
        BEAT.set_to_current_time()
    if task.name in _started_at:
        _started_at[task.name] = time.monotonic()
        STARTED.labels(task.name, "beat" if is_by_beat else "wake-up").inc()


@signals.celeryd_init.connect
def _set_unique_name(instance: Any = None, **_: Any) -> None:
    """Give the worker a name that is unique even among the workers of one machine."""
    instance.hostname = f"{os.getpid()}.{instance.hostname}"


@signals.worker_init.connect
@signals.beat_init.connect
def _check_database(signal: Any = None, **_: Any) -> None:
    """Log which version starts. Exit if the database is not the intended one.

    Raises SystemExit, because Celery ignores any other error here.
    """
    version.announce("worker" if signal is signals.worker_init else "beat")
    with startup.refusals_printed():
        startup_checks.require_valid_database()


@signals.worker_init.connect
def _check_sms_sender(**_: Any) -> None:
    """Exit if the SMS sender in the settings cannot be created. Raises SystemExit."""
    with startup.refusals_printed():
        senders.require_sender()


@signals.worker_init.connect
def _start_tickers(**_: Any) -> None:
    """Start a thread for each pump, so that a pump that waits for a third party does not delay the others.

    The pump that finishes operations gets 4 * PUMP_SLOTS threads. It handles three kinds of operations. Each
    kind can occupy at most PUMP_SLOTS threads while it waits for the provider. Some threads therefore stay
    free even if the provider does not answer.
    """
    for name in PUMPS:
        for number in range(4 * settings.PUMP_SLOTS if name == FINISH_OPERATIONS else 1):
            called = f"ticker {number} of {name}"
            threading.Thread(target=_run_pump_if_idle, args=(name,), name=called, daemon=True).start()


@signals.worker_shutting_down.connect
def _end_tickers(**_: Any) -> None:
    """Stop the tickers, so that a worker that is shutting down does not start another pump."""
    _is_ending.set()


def _run_pump_if_idle(name: str) -> None:
    """Run the pump directly, without Redis, whenever it has not started recently. Stop at shutdown."""
    while not _is_ending.wait(CHECK_SECONDS):
        liveness.watch()
        now = time.monotonic()
        if now - _started_at[name] >= SILENCE_SECONDS:
            _started_at[name] = now - SILENCE_SECONDS + RESTART_SECONDS
            STARTED.labels(name, "ticker").inc()
            _run_pump(name)
    liveness.unwatch()


@sampling.every_second
def _sample_tickers() -> None:
    for ticker, silence in liveness.sign_ages().items():
        TICKERS.labels(ticker).set(silence)


def _run_pump(name: str) -> None:
    try:
        app.tasks[name]()
        app.tasks[DELIVER_DUE]()  # the wake-up for the pump's events might be lost
    except Exception as error:
        log.error("pump failed", task=name, error=type(error).__name__, exc_info=True)
    finally:
        close_old_connections()


@signals.worker_ready.connect
def _freeze_loaded_code(**_: Any) -> None:
    """Exempt the loaded code from garbage collection.

    The code consists of half a million objects that exist as long as the process.
    """
    gc.collect()
    gc.freeze()
