"""A shop that receives Stripe's events."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.serving import Reply, serving


@dataclass
class Shop:
    """A server that stores each message and its signature. It responds with the status that the test has set."""

    address: str = ""
    messages: list[tuple[bytes, str]] = field(default_factory=list)
    status: int = 200

    def take(self, handler: BaseHTTPRequestHandler, body: bytes) -> Reply:
        self.messages.append((body, handler.headers["Stripe-Signature"]))
        return Reply(self.status)


@contextmanager
def listening() -> Iterator[Shop]:
    """Run a shop for the duration of the block."""
    shop = Shop()
    with serving(shop.take) as address:
        shop.address = f"{address}/hook"
        yield shop
