"""Measures the median time of an API read while 16 people log in.

The time is wall time in this process. It is measured twice: with our password hasher, which limits parallel
hashes, and with Django's hasher. Both times are compared with a read without logins in the same run.
"""

import re
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from django.db import connection
from django.test import override_settings

from portal.accounts.password_slots import RETRY_SECONDS
from portal.models import User
from tests.bench.api import app, report
from tests.bench.api.app import Backend, Call

PEOPLE = 16
PASSWORD = "a bill on the table"
SECONDS = 10.0
# The time with logins must be at most this many times as long. A hash occupies one of two cores, and this
# process also serves the login pages.
BUDGET = 5.0
PAUSE = 0.01  # seconds between two reads
FORM = "application/x-www-form-urlencoded"
DJANGOS_OWN = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]


def run(folder: Path, scale: float) -> None:
    """Print the median times of a read, and the number of logins in each measurement."""
    app.log_to(folder / "logins.log")
    app.use("logins")
    backend = Backend.of_new_merchant("Logins")
    read = backend.get(f"checkouts/{_created(backend)}")
    for number in range(PEOPLE):
        User.objects.create_user(_email(number), PASSWORD)
    seconds = max(1.0, SECONDS * scale)
    alone = _median(read, seconds)
    with _logging_in() as logins:
        limited = _median(read, seconds)
    with override_settings(PASSWORD_HASHERS=DJANGOS_OWN), _logging_in() as unlimited_done:
        unlimited = _median(read, seconds)
    rows = [
        ("no logins", f"{1000 * alone:.1f}", "", ""),
        _row("one hash at a time", limited, alone, len(logins), BUDGET),
        _row("as many hashes as logins", unlimited, alone, len(unlimited_done), None),
    ]
    report.table(("16 people log in", "read, median ms", "ratio", "logins"), rows)


def _row(name: str, median: float, alone: float, logins: int, budget: float | None) -> tuple[str, ...]:
    ratio = report.judged("read while people log in, ratio", median / alone, budget)
    return name, f"{1000 * median:.1f}", ratio, str(logins)


def _created(backend: Backend) -> str:
    (found,) = re.findall(r'"checkout_uuid":"([^"]+)"', backend.create().send().body.decode())
    return str(found)


def _email(number: int) -> str:
    return f"person-{number}@acme.example"


def _median(read: Call, seconds: float) -> float:
    """Return the median time of a read, in seconds."""
    took, until = list[float](), time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        read.send()
        took.append(time.perf_counter() - started)
        time.sleep(PAUSE)
    return statistics.median(took)


@contextmanager
def _logging_in() -> Iterator[list[int]]:
    """For the duration of the block, let each person log in repeatedly. Yield a list that grows with each login."""
    logins, stop = list[int](), threading.Event()
    threads = [threading.Thread(target=_log_in, args=(number, logins, stop)) for number in range(PEOPLE)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    try:
        yield logins
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _log_in(number: int, logins: list[int], stop: threading.Event) -> None:
    try:
        call = _login(number)
        while not stop.is_set():
            try:
                call.send()
                logins.append(number)
            except RuntimeError as refused:
                if ": 429 " not in str(refused):
                    raise
                stop.wait(RETRY_SECONDS)
    finally:
        connection.close()


def _login(number: int) -> Call:
    """Open the login page. Return the call that submits the person's password."""
    page = Call("GET", "/accounts/login/", content_type=FORM).send()
    cookie = next(text.split(";")[0] for name, text in page.headers if name == "Set-Cookie")
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.body.decode())[0]
    sent = {"csrfmiddlewaretoken": token, "login": _email(number), "password": PASSWORD}
    return Call("POST", "/accounts/login/", 302, urlencode(sent).encode(), cookie=cookie, content_type=FORM)
