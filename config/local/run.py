"""`make run`: start the engines, the seed, web, worker, beat and the demo shop, and stop all of them at the end."""

import contextlib
import http.client
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from config.lib.web import origins
from config.local import CannotStart, children, engines, environment

READY_SECONDS = 60
# Rule environment.run allows 10 seconds for the shutdown. Each of the two engines can need 2 of these seconds.
END_SECONDS = 6
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GUNICORN = Path(__file__).resolve().parents[1] / "gunicorn.py"
CREDENTIALS = "credentials.json"
SANDBOX = "sandbox.json"
SHOWN_CREDENTIALS = {
    "Service": ("base_url", "client_id", "client_secret"),
    "Portal": ("portal_url", "portal_email", "portal_password"),
    "Admin": ("admin_url", "admin_username", "admin_password"),
    "Shop": ("shop_url", "shop_portal_email", "shop_portal_password"),  # login of the shop's merchant
}
Commands = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Plan:
    """The parts of a run: first a seed, which writes the credentials file, then services that keep running."""

    seed: Sequence[str]
    services: Commands
    ready: Mapping[
        str, str
    ]  # maps each port's variable to the path that returns 200 when the service is ready


def plan(folder: Path, port: str) -> Plan:
    """Return the plan for `make run`: all services bind to 127.0.0.1 (rule environment.run)."""
    python = (sys.executable, "-m")
    web = f"--bind 127.0.0.1:{port} --workers 2 --graceful-timeout 5 config.wsgi"
    # As root, Celery warns because of pickle, but the tasks do not use pickle.
    as_root = "ignore:You're running the worker with superuser"
    worker = "celery --quiet --app config.celery worker --without-gossip --without-mingle"
    beat = "celery --quiet --app config.celery beat --schedule"
    return Plan(
        seed=(*python, "config.local.seed", str(folder / CREDENTIALS)),
        services={
            "web": (*python, "gunicorn", "--config", str(GUNICORN), *web.split()),
            "worker": (sys.executable, "-W", as_root, "-m", *worker.split(), "--loglevel", "INFO"),
            "beat": (*python, *beat.split(), str(folder / "beat")),
            "shop": (*python, "config.local.shop"),
        },
        ready={"PORT": "/readyz", "SHOP_PORT": "/ready"},
    )


def main(folder: Path = environment.FOLDER, planned: Callable[[Path, str], Plan] = plan) -> int:
    """Run until SIGINT or SIGTERM, then return 0. If a part fails, print the reason and return 1."""
    os.umask(0o077)
    try:
        with _end_on_signals():
            _run_planned(folder, planned)
    except CannotStart as reason:
        sys.stderr.write(f"make run: {reason}\n")
        return 1
    return 0


class _Interrupted(BaseException):
    """Raised if a signal asks the run to end."""


@contextlib.contextmanager
def _end_on_signals() -> Iterator[None]:
    """At the first signal, end the block in an orderly way."""

    def stop(signum: int, frame: FrameType | None) -> None:
        _ignore_signals()
        raise _Interrupted

    for number in SIGNALS:
        signal.signal(number, stop)
    with contextlib.suppress(_Interrupted):
        yield


def _ignore_signals() -> None:
    """Ignore further signals, so that they do not interrupt the shutdown."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _run_planned(folder: Path, planned: Callable[[Path, str], Plan]) -> None:
    variables = environment.variables_of_run(os.environ, folder)
    steps = planned(folder, variables["PORT"])
    _check_ports(variables)
    log = children.Log(["seed", *steps.services], colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    database_url, redis_url = variables.get("DATABASE_URL", ""), variables.get("REDIS_URL", "")
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(
                engines.running(folder, database_url=database_url, redis_url=redis_url)
            )
            (folder / SANDBOX).unlink(missing_ok=True)  # a run that was killed can leave it
            variables |= {"DATABASE_URL": running.database_url, "REDIS_URL": running.redis_url}
            stack.callback(environment.share_variables(variables, folder).unlink, missing_ok=True)
            credentials = _migrate_and_seed(steps.seed, variables, folder, log)
            services = stack.enter_context(
                _start_commands(steps.services, variables | _for_shop(credentials, folder), log)
            )
            _wait_until_ready(steps.ready, variables, services)
            stack.callback((folder / SANDBOX).unlink, missing_ok=True)
            _announce_addresses(variables, credentials, folder)
            _watch_services(services)
        finally:
            _ignore_signals()


def _watch_services(services: Sequence[children.Child]) -> None:
    """Watch the services, and never return. Raises _Interrupted at a signal, and CannotStart if a service ends."""
    while True:
        _check_alive(services)
        time.sleep(0.2)


@contextlib.contextmanager
def _start_commands(
    commands: Commands, variables: Mapping[str, str], log: children.Log
) -> Iterator[list[children.Child]]:
    """Start the commands and yield their processes. End all processes at the end of the block."""
    started: list[children.Child] = []
    try:
        for name, command in commands.items():
            started.append(children.Child(name, command, variables, log))
        yield started
    finally:
        children.end_all(started, within=END_SECONDS)


def _migrate_and_seed(
    command: Sequence[str], variables: Mapping[str, str], folder: Path, log: children.Log
) -> dict[str, str]:
    """Migrate the database and create the seed. Return the credentials that the seed wrote."""
    with _start_commands({"seed": command}, variables, log) as (seed,):
        while seed.exit_code() is None:
            time.sleep(0.02)
    if seed.exit_code() != 0:
        raise CannotStart(f"the seed ended with exit code {seed.exit_code()}; the lines above say why.")
    return environment.read_private(folder / CREDENTIALS)


def _for_shop(credentials: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {
        "SHOP_CLIENT_ID": credentials["shop_client_id"],
        "SHOP_CLIENT_SECRET": credentials["shop_client_secret"],
        "SHOP_STATE": str(folder / "shop.sqlite3"),
    }


def _check_ports(variables: Mapping[str, str]) -> None:
    for name in ("PORT", "SHOP_PORT"):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", int(variables[name])))
            except OSError as error:
                why = f"Port {variables[name]} cannot be used ({os.strerror(error.errno or 0).lower()})"
                raise CannotStart(f"{why}: choose another with {name}=… make run") from None


def _check_alive(services: Sequence[children.Child]) -> None:
    for service in services:
        if service.exit_code() is not None:
            raise CannotStart(f"{service.name} ended unexpectedly with exit code {service.exit_code()}.")


def _wait_until_ready(
    ready: Mapping[str, str], variables: Mapping[str, str], services: Sequence[children.Child]
) -> None:
    """Wait until every address answers with 200. Raises CannotStart if a service ends, or after a minute."""
    deadline = time.monotonic() + READY_SECONDS
    for name, path in ready.items():
        while not _is_answering(int(variables[name]), path):
            _check_alive(services)
            if time.monotonic() > deadline:
                raise CannotStart(
                    f"nothing answers at http://127.0.0.1:{variables[name]}{path} after a minute."
                )
            time.sleep(0.1)


def _is_answering(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


def _announce_addresses(variables: Mapping[str, str], credentials: Mapping[str, str], folder: Path) -> None:
    """Print the addresses and credentials, and write them to a file for programs.

    The file exists only when the service is ready. Rule environment.run.
    """
    base_url = variables["BASE_URL"]
    known = {
        **credentials,
        "base_url": base_url,
        "portal_url": f"{origins.with_localhost(base_url)}/portal",
        "admin_url": f"{origins.with_localhost(base_url)}/admin/",
        "shop_url": f"http://127.0.0.1:{variables['SHOP_PORT']}",
    }
    rows = [
        (title if key == keys[0] else "", key)
        for title, keys in SHOWN_CREDENTIALS.items()
        for key in keys
        if key in known
    ]
    lines = [f"  {title:<9}{key:<22}{known[key]}\n" for title, key in rows]
    children.write(f"\n{''.join(lines)}\n  Ctrl-C ends it.\n\n".encode())
    environment.write_private(folder / SANDBOX, {key: known[key] for _, key in rows})


if __name__ == "__main__":
    sys.exit(main())
