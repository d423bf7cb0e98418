"""The sender of a worker process: a thread with an asyncio loop that sends the due deliveries from the queue.

Two tasks run at the same time. One task claims as many due rows as there are free slots. The other task records the
attempts that have ended. Batches therefore become larger under load, and a slow claim does not delay the recording.
Everything that must not be lost is stored in PostgreSQL, so this process can be killed without losing a delivery.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import connection
from prometheus_client import Histogram

from config.lib import failpoint
from config.lib.process import liveness, tracing
from webhooks import delivery, headers, retries, targets, transport
from webhooks.models import decrypt_if_personal

log = structlog.get_logger("webhooks.delivery_sender")

POLL_SECONDS = 1.0  # the queue is checked at this interval if no wake-up arrives
GATHER_SECONDS = 0.05  # an answer waits this long for other answers, so that they are recorded together
GATHER_SHARE = 0.5  # when the waiting answers fill this share of the slots, they are recorded at once
# For one second after a claim, the queue is checked at this interval. A claim can leave due deliveries in the queue,
# because of a pace limit or because another process was claiming.
BUSY_POLL_SECONDS = 0.05
PAUSE_SECONDS = 0.5  # pause after a claim, a sweep or a recording has failed
SWEEP_SECONDS = 1.0
START_SECONDS = 5.0
STOP_GRACE_SECONDS = 4.0  # maximum time for recording the attempts that were cancelled when the sender stops
URGENT_SHARE = 0.4  # this share of the slots is reserved for urgent deliveries
# The wait in seconds before each attempt to record results. From the third attempt on, each result is recorded
# separately, because a single result might cause the failure. While PostgreSQL is down, each attempt waits 5 s for a
# connection. All attempts together then take nearly as long as a lease.
RECORD_PAUSES = (0.0, 0.2, 1.0, 3.0)
TRIES_TOGETHER = 2

DELIVERIES = Histogram(
    "checkout_delivery_seconds",
    "Time to a receiver's answer, by what came of the attempt",
    ["outcome"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15),
)
Returned = TypeVar("Returned")


class Sender:
    """Sends due deliveries from `start` until `stop`, at most `slots` at the same time."""

    def __init__(self, *, slots: int, allow_loopback: bool) -> None:
        self._slots = slots
        self._general_slots = slots - int(slots * URGENT_SHARE)
        self._allow_loopback = allow_loopback
        self._recording = ThreadPoolExecutor(1, thread_name_prefix="webhooks-recording")
        self._claiming = ThreadPoolExecutor(1, thread_name_prefix="webhooks-claiming")
        self._thread = threading.Thread(target=self._run, name="webhooks-sender", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._woken: asyncio.Event  # set if more deliveries might be due, or if a slot is free
        self._ended: asyncio.Event  # set if there is a result to record
        self._pool: transport.Pool
        self._sending: dict[asyncio.Task[transport.Answer], delivery.Claimed] = {}
        self._swept_at = self._claimed_at = 0.0
        self._is_stopping = False
        self._record_timer: asyncio.TimerHandle | None = None
        self._unrecorded = 0  # number of answers that wait to be recorded together with others

    def start(self) -> None:
        """Start the sender's thread, and return when it is ready to send deliveries."""
        self._thread.start()
        self._ready.wait(START_SECONDS)

    def is_running(self) -> bool:
        return self._thread.is_alive() and not self._is_stopping

    def wake(self) -> None:
        """Make the sender check the queue now. This method can be called by any thread at any time."""
        with contextlib.suppress(
            RuntimeError
        ):  # if the sender has stopped, another process will check the queue
            self._loop.call_soon_threadsafe(self._woken.set)

    def stop(self, drain_seconds: float) -> None:
        """Stop claiming, and return when all attempts are recorded.

        Attempts that are still in flight after `drain_seconds` are cancelled.
        """
        self._is_stopping = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._record_soon)
            self._loop.call_soon_threadsafe(self._loop.call_later, drain_seconds, self._cut_off)
        self._thread.join(drain_seconds + STOP_GRACE_SECONDS)

    def _run(self) -> None:
        transport.run(self._send_until_stopped())
        for thread in (self._recording, self._claiming):
            thread.submit(_close_connection)
            thread.shutdown()

    async def _send_until_stopped(self) -> None:
        self._loop, self._woken, self._ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        async with transport.open_pool(allow_loopback=self._allow_loopback) as self._pool:
            self._ready.set()
            self._woken.set()
            claiming = asyncio.create_task(self._claim_until_stopped())
            claiming.add_done_callback(lambda _: self._record_soon())
            while not claiming.done() or self._sending:
                await self._ended.wait()
                self._ended.clear()
                if not await self._survives(self._record):
                    self._ended.set()
            await claiming

    async def _claim_until_stopped(self) -> None:
        while not self._is_stopping:
            liveness.watch()
            with contextlib.suppress(TimeoutError):
                is_brisk = time.monotonic() - self._claimed_at < POLL_SECONDS
                await asyncio.wait_for(self._woken.wait(), BUSY_POLL_SECONDS if is_brisk else POLL_SECONDS)
            self._woken.clear()
            if not await self._survives(self._claim) or not await self._survives(self._sweep):
                self._woken.set()
        liveness.unwatch()

    async def _survives(self, turn: Callable[[], Awaitable[None]]) -> bool:
        """Run `turn` and return whether it succeeded. After a failure, wait, because PostgreSQL might be down."""
        try:
            await turn()
        except Exception as error:
            log.warning("webhooks turn failed", error=type(error).__name__, exc_info=True)
            await asyncio.sleep(PAUSE_SECONDS)
            return False
        return True

    async def _record(self) -> None:
        ended = {task: claimed for task, claimed in self._sending.items() if task.done()}
        if ended:
            results = [_result_of(task, claimed) for task, claimed in ended.items()]
            await self._in_database(self._recording, record_with_retries, results)
            for task in ended:
                del self._sending[task]

    async def _sweep(self) -> None:
        if self._is_stopping or time.monotonic() - self._swept_at < SWEEP_SECONDS:
            return
        self._swept_at = time.monotonic()
        lost = await self._in_database(self._claiming, delivery.close_lost_attempts)
        if lost:
            log.warning("webhook attempts of a lost worker closed", count=lost)
        await self._in_database(self._claiming, delivery.end_obsolete_deliveries)

    async def _claim(self) -> None:
        sending = [claimed for task, claimed in self._sending.items() if not task.done()]
        # The attempts that are in flight or wait to be recorded are at most twice as many as the slots. If there were
        # more, leases would expire before the results are recorded.
        free = min(self._slots - len(sending), 2 * self._slots - len(self._sending))
        if self._is_stopping or not free:
            return
        general = max(0, self._general_slots - sum(not claimed.is_urgent for claimed in sending))
        deadline = time.monotonic() + transport.DEADLINE_SECONDS
        claim = partial(delivery.claim, slots=free, general_slots=general)
        claimed_now = await self._in_database(self._claiming, claim)
        for claimed in claimed_now:
            task = asyncio.create_task(self._send(claimed, deadline))
            task.add_done_callback(self._attempt_ended)
            self._sending[task] = claimed
        if claimed_now or claimed_now.is_shared:
            self._claimed_at = time.monotonic()
        if len(claimed_now) == free:
            self._woken.set()  # more deliveries might be due

    def _attempt_ended(self, _: object) -> None:
        self._unrecorded += 1
        if self._unrecorded >= GATHER_SHARE * self._slots:
            self._record_soon()
        elif self._record_timer is None:
            self._record_timer = self._loop.call_later(GATHER_SECONDS, self._record_soon)

    def _record_soon(self) -> None:
        if self._record_timer is not None:
            self._record_timer.cancel()
        self._record_timer, self._unrecorded = None, 0
        self._ended.set()
        self._woken.set()

    async def _send(self, claimed: delivery.Claimed, deadline: float) -> transport.Answer:
        left = deadline - time.monotonic()
        if left <= 0:
            # The claim took so long that no answer could arrive before the deadline.
            return transport.Answer(None, "the request could not be sent", "", 0)
        if not claimed.body:
            # The body was deleted at the moment when a person sent the delivery again.
            return transport.Answer(None, "its personal data has been deleted", "", 0)
        try:
            body = decrypt_if_personal(claimed.event_type, claimed.body)
            with tracing.span(
                f"delivery {claimed.event_type}", parent=claimed.traceparent, checkout=claimed.checkout_uuid
            ):
                return await transport.post(
                    self._pool,
                    targets.check_url(claimed.url, allow_loopback=self._allow_loopback),
                    headers.signed_headers(claimed, body),
                    body,
                    deadline_seconds=left,
                )
        except targets.TargetRefused:
            return transport.Answer(None, "address not allowed", "", 0)
        except Exception as error:
            log.error("webhook not sent", **_log_fields(claimed), error=type(error).__name__)
            return transport.Answer(None, "the request could not be sent", "", 0)

    def _cut_off(self) -> None:
        for task in self._sending:
            task.cancel()

    async def _in_database(
        self, thread: ThreadPoolExecutor, call: Callable[..., Returned], *arguments: object
    ) -> Returned:
        return await self._loop.run_in_executor(thread, _with_connection, call, arguments)


def _result_of(task: asyncio.Task[transport.Answer], claimed: delivery.Claimed) -> delivery.Result:
    lease = (claimed.delivery_id, claimed.lease_token)
    if task.cancelled():
        return delivery.Result(*lease, None, delivery.WORKER_LOST, None)
    answer = task.result()
    _count_and_log(claimed, answer)
    return delivery.Result(
        *lease, answer.http_status, answer.error_message, answer.duration_ms, answer.excerpt
    )


def _count_and_log(claimed: delivery.Claimed, answer: transport.Answer) -> None:
    if retries.is_delivered(answer.http_status):
        outcome = "delivered"
    else:
        outcome = "unanswered" if answer.http_status is None else "refused"
    DELIVERIES.labels(outcome).observe(answer.duration_ms / 1000)
    log.info(
        "delivery",
        outcome=outcome,
        **_log_fields(claimed),
        status=answer.http_status,
        error=answer.error_message,
        ms=answer.duration_ms,
    )


def _log_fields(claimed: delivery.Claimed) -> dict[str, object]:
    """Return the fields that every log line about an attempt has."""
    return {
        "delivery": claimed.delivery_id,
        "event_id": claimed.event_id,
        "type": claimed.event_type,
        "attempt": claimed.attempt_number,
        "merchant": claimed.merchant_uuid,
        "checkout": claimed.checkout_uuid or "",
    }


def _with_connection(call: Callable[..., Returned], arguments: Sequence[object]) -> Returned:
    # The thread keeps its connection, because the pool would test a returned connection before each use.
    try:
        return call(*arguments)
    except Exception:
        _drop_broken_connections()
        raise


def _drop_broken_connections() -> None:
    """Make the pool test all its connections, because all of them break when PostgreSQL restarts."""
    connection.close()
    pool = getattr(connection, "pool", None)
    if pool is not None:
        pool.check()


def _close_connection() -> None:
    connection.close()  # closes the connection that belongs to the calling thread


def record_with_retries(results: Sequence[delivery.Result]) -> None:
    """Record results, and retry if this fails. If a result were lost, its POST would be sent a second time."""
    for result in results:
        failpoint.reach("webhook_answered", result.delivery_id)
    for tries, pause in enumerate(RECORD_PAUSES):
        time.sleep(pause)
        try:
            record = delivery.record_results if tries < TRIES_TOGETHER else delivery.record_one_by_one
            record(results)
        except Exception as error:
            log.warning("webhook results not recorded", tries=tries + 1, error=type(error).__name__)
            _drop_broken_connections()
        else:
            return
    log.error("webhook results given up; their leases run out", count=len(results))


_starting = threading.Lock()
_sender: Sender | None = None
_is_stopped = False


def wake() -> None:
    """Wake the sender of this process. If it is not running, start it."""
    global _sender
    with _starting:
        if _is_stopped:
            return
        if _sender is None or not _sender.is_running():
            _sender = Sender(slots=settings.WEBHOOK_SLOTS, allow_loopback=settings.WEBHOOK_LOOPBACK)
            _sender.start()
    _sender.wake()


def stop(drain_seconds: float) -> None:
    """Stop this process's sender within about `drain_seconds`. It cannot be started again."""
    global _is_stopped
    with _starting:
        _is_stopped = True
    if _sender is not None:
        _sender.stop(drain_seconds)
