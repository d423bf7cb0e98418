"""A limit on how many passwords a process hashes at the same time, so that API calls still get CPU time.

Rule limit.passwords.
"""

from contextvars import ContextVar

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from config.lib.bulkhead import Bulkhead, Busy, KeyedLimit
from config.lib.web import address

# A hash takes a core for a quarter of a second. With 16 parallel logins on two cores, the median time of an API
# read rises from 1.8 to 129 ms without this limit, and stays at 1.8 ms with it (measured by `make bench
# ARGS=logins`).

# How many logins can wait for each slot. About this number get a slot within two seconds, and they occupy only
# a few of the process's threads.
QUEUE = 8
PER_NETWORK = 3  # logins of one network that hash or wait at the same time, so that others get slots too
RETRY_SECONDS = 3
SLOTS = Bulkhead(settings.PASSWORD_SLOTS, queue=QUEUE * settings.PASSWORD_SLOTS, name="passwords")
NETWORK_LIMIT = KeyedLimit((1 + QUEUE) * settings.PASSWORD_SLOTS, each=PER_NETWORK)
# The network of the current request, or "" in a command.
_network: ContextVar[str] = ContextVar("network", default="")


class TooManyLogins(Busy):
    """Raised if no slot to hash a password was free within two seconds. No password was hashed or compared."""


class PasswordHasher(PBKDF2PasswordHasher):
    """Django's default hasher, which takes a slot for each hash. Its other methods call `encode` to hash."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the hash. Raises TooManyLogins."""
        with NETWORK_LIMIT.place(_network.get()) as is_free, SLOTS.slot() as slot:
            try:
                if not is_free:
                    SLOTS.refuse()
                slot.wait()
            except Busy:
                raise TooManyLogins from None
            return super().encode(password, salt, iterations)


class PasswordSlotMiddleware(MiddlewareMixin):
    """Stores the request's network. It turns TooManyLogins into a page that says when to try again."""

    def process_request(self, request: HttpRequest) -> None:
        _network.set(address.networks_of(address.caller_address(request)).network)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, TooManyLogins):
            return None
        page = render(request, "account/many_logins.html", {"again": request.get_full_path()}, status=429)
        page["Retry-After"] = str(RETRY_SECONDS)
        return page
