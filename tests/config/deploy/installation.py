"""A complete installation, as an operator makes it.

It starts in an empty folder, with production's packages, an unprivileged user, nginx and PgBouncer. It needs no
container engine, because it runs the commands of the Dockerfile, the containers and the units directly.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests

from config.deploy import make_env
from config.local import engines
from config.local.servers import VALKEY_SOCKET
from tests.config.deploy import package, proxy

NOBODY = 65534
# The service's database role. The tables belong to a different role, the default role of the local PostgreSQL.
SERVICE = "checkout_service"
AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


class Installation:
    """A folder with the contents of the image, and the processes that run from it."""

    def __init__(self, home: Path, kept: Path) -> None:
        self.home, self.kept = home, kept
        self.variables: dict[str, str] = {}
        self.url = ""
        self.web_socket = f"unix:{kept}/web.sock"
        self.certificate = str(home.parent / ".tls" / "public.pem")

    def build(self) -> None:
        """Copy the files of the image, and run the commands of the Dockerfile."""
        for path in package.shipped():
            place = package.ROOT / path
            if place.is_dir():
                shutil.copytree(place, self.home / path, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(place, self.home / path)
        for words in package.arguments_of("RUN"):
            # With this PATH, the command uses the system's Python, which every user may run.
            bare = {"PATH": os.defpath, "HOME": str(self.kept)}
            subprocess.run(words.split(), cwd=self.home, env=bare, check=True)

    def words(self, command: list[str]) -> list[str]:
        """Return a container's command with the paths and the port of this installation."""
        moved = {
            "python": str(self.home / ".venv/bin/python"),
            "/var/lib/checkout/beat": str(self.kept / "beat"),
            "unix:/run/web/web.sock": self.web_socket,
            "0.0.0.0:8000": f"127.0.0.1:{self.variables['PORT']}",
        }
        return [moved.get(word, word) for word in command]

    def manage(self, *words: str) -> str:
        command = self.words(["python", "manage.py", *words])
        done = subprocess.run(
            command,
            cwd=self.home,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            **AS_NOBODY,
        )
        assert done.returncode == 0, done.stderr
        output: str = done.stdout
        return output

    @contextlib.contextmanager
    def running(self, name: str, command: list[str], **more: Any) -> Iterator[None]:
        """Run a process until the block ends. Fail if the process ends earlier."""
        log = self.kept / f"{name}.log"
        with open(log, "wb") as lines:
            process = subprocess.Popen(
                command, cwd=self.home, env=self.variables, stdout=lines, stderr=subprocess.STDOUT, **more
            )
        try:
            yield
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        finally:
            process.terminate()
            process.wait(40)

    def logs(self) -> str:
        """Return the end of the log of each process, except nginx."""
        found = [
            log for log in sorted(self.kept.glob("*.log")) if log.name not in ("access.log", "nginx.log")
        ]
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in found)

    def files(self) -> dict[str, tuple[int, int]]:
        """Return the size and the modification time of each file in the installation."""
        return {
            str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in sorted(self.home.rglob("*"))
            if path.is_file()
        }


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def until(true: Callable[[], bool], *, within: float = 25) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@contextlib.contextmanager
def running() -> Iterator[Installation]:
    """Run a full installation, with the services of compose.yaml, for the duration of the block."""
    with tempfile.TemporaryDirectory(prefix="checkout-srv-") as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        home, kept = Path(folder, "home"), Path(folder, "kept")
        home.mkdir()
        kept.mkdir()
        os.chmod(kept, 0o777)
        made = Installation(home, kept)
        made.build()
        subprocess.run(["chmod", "-R", "a-w", str(home)], check=True)
        stack.callback(subprocess.run, ["chmod", "-R", "u+w", str(home)], check=True)
        _start(made, Path(folder), stack)
        yield made


def _start(made: Installation, folder: Path, stack: contextlib.ExitStack) -> None:
    own = stack.enter_context(engines.running(folder / "engines", durable=False))
    sockets = Path(own.redis_url.removeprefix("unix://")).parent
    os.chmod(sockets, 0o755)
    os.chmod(sockets / VALKEY_SOCKET, 0o777)
    make_env.write(folder, "localhost")
    said = dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines() if "=" in line)
    https, port, pooler = free_port(), free_port(), free_port()
    made.url = f"https://localhost:{https}"
    set_there = package.compose()["services"]["web"]["environment"]
    made.variables = said | {"PATH": os.defpath, "HOME": str(made.kept), "PORT": port}
    made.variables |= {"BASE_URL": made.url, "TRUSTED_PROXY_COUNT": set_there["TRUSTED_PROXY_COUNT"]}
    made.variables["ERASURES_FILE"] = set_there["ERASURES_FILE"].replace("/srv/kept", str(made.kept))
    made.variables |= {"REDIS_URL": own.redis_url, "PYTHONDONTWRITEBYTECODE": "1", "WEB_CONCURRENCY": "2"}
    made.variables["WEB_ADDRESS"] = f"127.0.0.1:{port}"
    password = said["CHECKOUT_PASSWORD"]
    made.variables["DATABASE_URL"] = f"postgresql://{SERVICE}:{password}@/checkout?host={sockets}"
    made.variables["DATABASE_OWNER_URL"] = own.database_url
    made.manage(*package.compose()["services"]["migrate"]["command"][2:])
    del made.variables["DATABASE_OWNER_URL"], made.variables["POSTGRES_PASSWORD"]
    _pool(made, sockets, pooler, password, stack)
    made.variables["DATABASE_URL"] = f"postgresql://{SERVICE}:{password}@127.0.0.1:{pooler}/checkout"
    for part in package.PARTS:
        stack.enter_context(made.running(part, made.words(package.command(part)), **AS_NOBODY))
    nginx = proxy.command(made.kept, folder / ".tls", web=made.web_socket, http=free_port(), https=https)
    stack.enter_context(made.running("nginx", nginx))
    try:
        until(lambda: _is_ready(made))
    except AssertionError:
        raise AssertionError(made.logs()) from None


def _pool(made: Installation, sockets: Path, port: str, password: str, stack: contextlib.ExitStack) -> None:
    users, written = made.kept / "userlist.txt", made.kept / "pgbouncer.ini"
    users.write_text(f'"{SERVICE}" "{password}"')
    text = (package.DEPLOY / "pgbouncer.ini").read_text()
    for there, here in {
        "host=postgres": f"host={sockets}",
        "listen_addr = 0.0.0.0": "listen_addr = 127.0.0.1\nunix_socket_dir =",
        "listen_port = 6432": f"listen_port = {port}",
        "/etc/pgbouncer/userlist.txt": str(users),
    }.items():
        assert there in text
        text = text.replace(there, here)
    written.write_text(text)
    os.chmod(users, 0o644)
    program = shutil.which("pgbouncer", path=f"{os.defpath}:/usr/sbin") or "pgbouncer"
    stack.enter_context(made.running("pgbouncer", [program, str(written)], **AS_NOBODY))


def _is_ready(made: Installation) -> bool:
    with contextlib.suppress(requests.RequestException):
        is_there = (
            requests.get(f"http://127.0.0.1:{made.variables['PORT']}/readyz", timeout=20).status_code == 200
        )
        return is_there and get(made, "/livez").status_code == 200
    return False


def get(made: Installation, path: str, **more: Any) -> requests.Response:
    return requests.get(f"{made.url}{path}", verify=made.certificate, timeout=20, **more)


class Backend:
    """The backend of a new merchant. The `create_merchant` command creates both."""

    def __init__(self, made: Installation, owner: str = "lea@acme.example") -> None:
        self._made = made
        key = json.loads(made.manage("create_merchant", "Acme", f"--email={owner}", "--json"))
        grant = {"grant_type": "client_credentials"} | {
            name: key[name] for name in ("client_id", "client_secret")
        }
        self._token = self._call("POST", "/oauth/token", grant)["access_token"]

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, f"/api/{path}", body, Authorization=f"Bearer {self._token}")["data"]

    def _call(self, method: str, path: str, body: Any, **headers: str) -> Any:
        answer = requests.request(
            method,
            f"{self._made.url}{path}",
            json=body,
            headers=headers,
            verify=self._made.certificate,
            timeout=20,
        )
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else {"data": None}
