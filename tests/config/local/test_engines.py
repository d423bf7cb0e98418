import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from config.local import CannotStart, engines
from tests.config.local import living

ROOT = Path(__file__).resolve().parents[3]
HOLDER = """
import signal, sys, time
from pathlib import Path
from config.local import engines
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background of a shell ignores it
with engines.running(Path(sys.argv[1])) as running:
    print(running.database_url, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@contextmanager
def held_by_another_process(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as holder:
        assert holder.stdout is not None
        try:
            yield holder, holder.stdout.readline().strip()
        finally:
            holder.kill()


def value(database_url: str, statement: str) -> object:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return row[0] if row else None


class TestRunning:
    def test_gives_a_database_in_utc_and_a_redis(self, folder: Path) -> None:
        with engines.running(folder, durable=False) as running:
            assert value(running.database_url, "SELECT current_setting('timezone')") == "UTC"
            assert value(running.database_url, "SELECT current_database()") == "checkout"
            assert value(running.database_url, "SELECT current_setting('fsync')") == "off"
            assert redis.Redis.from_url(running.redis_url).ping()

    def test_keeps_rows_and_keys_for_the_next_run(self, folder: Path) -> None:
        with engines.running(folder) as running:
            with psycopg.connect(running.database_url) as connection:
                connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            redis.Redis.from_url(running.redis_url).set("answer", "42")
        with engines.running(folder) as running:
            assert value(running.database_url, "SELECT answer FROM kept") == 42
            assert redis.Redis.from_url(running.redis_url).get("answer") == b"42"

    def test_leaves_no_process_and_no_socket(self, folder: Path) -> None:
        with engines.running(folder, durable=False):
            sockets = (folder / "sockets").readlink()
            assert len(living.processes_in(folder)) > 2
            assert sockets.stat().st_mode & 0o777 == 0o700
        assert living.processes_in(folder) == []
        assert not sockets.exists()

    def test_refuses_a_second_run_in_the_folder_with_one_line(self, folder: Path) -> None:
        with engines.running(folder, durable=False) as first:
            with (
                pytest.raises(CannotStart, match="in use by another run") as refusal,
                engines.running(folder),
            ):
                pass
            assert "\n" not in str(refusal.value)
            assert value(first.database_url, "SELECT 1") == 1

    def test_serves_two_folders_side_by_side(self, folder: Path, tmp_path: Path) -> None:
        with engines.running(folder, durable=False) as one, engines.running(tmp_path, durable=False) as other:
            redis.Redis.from_url(one.redis_url).set("whose", "one")
            assert redis.Redis.from_url(other.redis_url).get("whose") is None
            assert value(other.database_url, "SELECT count(*) FROM pg_stat_user_tables") == 0

    def test_starts_only_the_engine_without_an_address(self, tmp_path: Path) -> None:
        with engines.running(tmp_path, database_url="postgresql://elsewhere/checkout") as running:
            assert running.database_url == "postgresql://elsewhere/checkout"
            assert not (tmp_path / "postgres").exists()
            assert redis.Redis.from_url(running.redis_url).ping()

    def test_says_what_to_do_where_root_has_no_user_namespaces(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "unshare").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "unshare").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(CannotStart, match="set DATABASE_URL"), engines.running(tmp_path / "engines"):
            pass


class TestRedisSwitch:
    def test_stops_redis_and_restarts_it_with_its_keys(self, folder: Path) -> None:
        with engines.running(folder) as running:
            client = redis.Redis.from_url(running.redis_url, retry=None)
            client.set("kept", "yes")
            running.stop_redis()
            with pytest.raises(redis.ConnectionError):
                client.ping()
            running.start_redis()
            assert client.get("kept") == b"yes"

    def test_does_not_stop_an_external_redis(self, folder: Path) -> None:
        with engines.running(folder, durable=False, redis_url="redis://elsewhere") as running:
            with pytest.raises(ValueError, match="not ours"):
                running.stop_redis()
            assert value(running.database_url, "SELECT 1") == 1


class TestUncleanEnd:
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    def test_engines_end_with_their_parent(self, folder: Path, how: signal.Signals) -> None:
        with held_by_another_process(folder) as (holder, _):
            assert len(living.processes_in(folder)) > 2
            holder.send_signal(how)
            assert living.within(10, lambda: living.processes_in(folder) == [])

    def test_a_start_right_after_a_kill_waits_for_the_old_engines(self, folder: Path) -> None:
        with held_by_another_process(folder) as (holder, database_url):
            value(database_url, "SELECT 1")
            holder.kill()
            holder.wait()
            with engines.running(folder) as running:
                assert value(running.database_url, "SELECT 1") == 1

    def test_recovers_if_another_process_has_the_dead_servers_pid(self, folder: Path) -> None:
        leftover = f"{os.getpid()}\n{folder / 'postgres'}\n1\n5432\n/tmp\n\n\nready\n"
        (folder / "postgres" / "postmaster.pid").write_text(leftover)
        with engines.running(folder, durable=False) as running:
            assert value(running.database_url, "SELECT 1") == 1
