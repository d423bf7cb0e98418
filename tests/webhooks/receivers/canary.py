"""A server that must not get a request, because its address is forbidden for webhooks."""

import contextlib
import socket
import threading
from collections.abc import Iterator

# Different spellings of the canary's address in a URL, and other internal addresses.
LITERALS = [
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *("[0:0:0:0:0:0:0:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "10.0.0.1"),
    *("169.254.169.254", "[fd00:ec2::254]", "[fe80::1]"),
]
ODD = [
    *("127.1", "0x7f.1", "0x7f000001", "0177.0.0.1", "2130706433", "0", "127.000.000.001"),
    *("１２７.０.０.１", "127。0。0。1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "localhost", "LOCALHOST", "localhost.", "127.0.0.1."),
]


class Canary:
    """Servers on 127.0.0.1 and ::1, with the same port. They count the connections that they get."""

    def __init__(self) -> None:
        self.visits = 0
        self._listeners = [socket.create_server(("127.0.0.1", 0))]
        self.port = int(self._listeners[0].getsockname()[1])
        self._listeners.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        for listener in self._listeners:
            threading.Thread(target=self._count, args=(listener,), daemon=True).start()

    def _count(self, listener: socket.socket) -> None:
        while True:
            try:
                visitor, _ = listener.accept()
            except OSError:
                return
            self.visits += 1
            with visitor:
                visitor.recv(65536)
                visitor.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@contextlib.contextmanager
def listening() -> Iterator[Canary]:
    canary = Canary()
    try:
        yield canary
    finally:
        canary.close()
