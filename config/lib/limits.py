"""Rate limits: calls are counted in Redis, for all processes together, or per process while Redis is out.

Rule limit.no_redis.
"""

import threading
import time
from functools import cache

import structlog
from django.conf import settings
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError

log = structlog.get_logger("limits")
PAUSE = 5.0  # seconds in which a Redis that failed is not asked again
_out_until = 0.0
_counting = threading.Lock()  # the library's own counts are not made for several threads


def spend(name: str, *key: str) -> bool:
    """Count one call against settings.LIMITS[name] for this key; return whether it was within the limit."""
    return _ask("hit", name, key)


def has_left(name: str, *key: str) -> bool:
    """Return whether a further call would be within the limit, without counting one."""
    return _ask("test", name, key)


def _ask(question: str, name: str, key: tuple[str, ...]) -> bool:
    global _out_until
    rate = _rate(settings.LIMITS[name])
    if time.monotonic() >= _out_until:
        try:
            return bool(getattr(_shared(), question)(rate, name, *key))
        except RedisError as error:
            _out_until = time.monotonic() + PAUSE
            log.warning("limits are counted per process", error=type(error).__name__)
    with _counting:
        return bool(getattr(_own(), question)(rate, name, *key))


@cache
def _rate(text: str) -> RateLimitItem:
    return parse(text)


@cache
def _shared() -> FixedWindowRateLimiter:
    uri = settings.REDIS_URL.replace("unix://", "redis+unix://", 1)
    storage = storage_from_string(uri, socket_timeout=0.2, socket_connect_timeout=0.2)
    return FixedWindowRateLimiter(storage)


@cache
def _own() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(MemoryStorage())
