"""A limit on the passwords that a process hashes at a time, so that API calls still get CPU time.

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

# A hash takes a core for a quarter of a second. On two cores, 16 parallel logins raise the median of an API
# read from 1.8 to 129 ms without this limit, and leave it at 1.8 ms with it (measured by
# `make bench ARGS=logins`).

# Logins that can wait for each slot. About as many get a slot within two seconds, and they occupy only a few
# of the process's threads.
QUEUE = 8
PER_NETWORK = 3  # logins of one network that hash or wait at a time, so that others get slots too
RETRY_SECONDS = 3
SLOTS = Bulkhead(settings.PASSWORD_SLOTS, queue=QUEUE * settings.PASSWORD_SLOTS, name="passwords")
NETWORK_LIMIT = KeyedLimit((1 + QUEUE) * settings.PASSWORD_SLOTS, each=PER_NETWORK)
# The network of the current request; "" in a command.
_network: ContextVar[str] = ContextVar("network", default="")


class TooManyLogins(Busy):
    """No slot to hash a password was free within two seconds. No password was hashed or compared."""


class PasswordHasher(PBKDF2PasswordHasher):
    """Django's default hasher, with a slot for each hash. Its other methods hash by calling `encode`."""

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
    """Stores the request's network, and answers TooManyLogins with a page that says when to try again."""

    def process_request(self, request: HttpRequest) -> None:
        _network.set(address.networks_of(address.caller_address(request)).network)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, TooManyLogins):
            return None
        page = render(request, "account/many_logins.html", {"again": request.get_full_path()}, status=429)
        page["Retry-After"] = str(RETRY_SECONDS)
        return page
