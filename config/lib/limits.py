"""Rate limits. Redis counts the calls of all processes. While Redis fails, each process counts its own calls.

Rule limit.no_redis.
"""

import threading
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import structlog
from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from redis import Redis
from redis.commands.core import Script
from redis.exceptions import RedisError

log = structlog.get_logger("limits")
PAUSE = 5.0  # for this many seconds after an error, Redis is not used
_redis_down_until = 0.0
_count_lock = threading.Lock()  # the library's in-memory counts are not thread-safe
# All counts of a call need only one round trip. If one limit refuses the call, the call is not added to the later
# counts, because a refused client must not use up its merchant's limit.
_SPEND = """
for place, key in ipairs(KEYS) do
    local used = redis.call('INCR', key)
    if used == 1 then redis.call('EXPIRE', key, ARGV[2 * place]) end
    if used > tonumber(ARGV[2 * place - 1]) then return 0 end
end
return 1
"""


class Shared(NamedTuple):
    """A second count of the same calls, with a larger limit. An example is a limit for all clients of a merchant."""

    key: tuple[str, ...]
    factor: int  # the limit of the second count is this many times the limit of the first


class _Count(NamedTuple):
    rate: RateLimitItem
    identifiers: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.rate.key_for(*self.identifiers)


def spend(name: str, *key: str, shared: Shared | None = None) -> bool:
    """Count a call against settings.LIMITS[name]. Return whether it is within every limit."""
    return _check_counts(
        _spend_counts,
        lambda count: _process_limiter().hit(count.rate, *count.identifiers),
        _counts_to_spend(name, key, shared),
    )


def has_calls_left(name: str, *key: str, shared: Shared | None = None) -> bool:
    """Return whether another call would be within every limit, without counting a call."""
    counts = _counts_to_spend(name, key, shared)
    return _check_counts(
        _have_left, lambda count: _process_limiter().test(count.rate, *count.identifiers), counts
    )


def _counts_to_spend(name: str, key: tuple[str, ...], shared: Shared | None) -> list[_Count]:
    rate = _parse_rate(settings.LIMITS[name])
    counts = [_Count(rate, (name, *key))]
    if shared is not None:
        larger = type(rate)(rate.amount * shared.factor, rate.multiples)
        counts.append(_Count(larger, (name, "shared", *shared.key)))
    return counts


def _check_counts(
    in_redis: Callable[[list[_Count]], bool], in_process: Callable[[_Count], bool], counts: list[_Count]
) -> bool:
    global _redis_down_until
    if time.monotonic() >= _redis_down_until:
        try:
            return in_redis(counts)
        except RedisError as error:
            _redis_down_until = time.monotonic() + PAUSE
            log.warning("limits are counted per process", error=type(error).__name__)
    with _count_lock:
        return all(in_process(count) for count in counts)


def _spend_counts(counts: list[_Count]) -> bool:
    arguments = [number for rate, _ in counts for number in (rate.amount, rate.get_expiry())]
    return bool(_spend_script()([count.key for count in counts], arguments))


def _have_left(counts: list[_Count]) -> bool:
    used = _redis_client().mget([count.key for count in counts])
    return all(int(number or 0) < count.rate.amount for number, count in zip(used, counts, strict=True))


@cache
def _parse_rate(text: str) -> RateLimitItem:
    return parse(text)


@cache
def _redis_client() -> Redis:
    return Redis.from_url(settings.REDIS_URL, socket_timeout=0.2, socket_connect_timeout=0.2)


@cache
def _spend_script() -> Script:
    return _redis_client().register_script(_SPEND)


@cache
def _process_limiter() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(MemoryStorage())
