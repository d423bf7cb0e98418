"""PgBouncer in transaction mode.

The tests here check that PgBouncer runs in this mode, and that the service does not rely on session state. Some of the
other tests run a second time through PgBouncer.
"""

import re
from pathlib import Path

import psycopg
import pytest

from config import settings
from config.local import engines
from tests import pooler, template

APPS = ("checkout", "config", "hosted_page", "payments", "portal", "webhooks")
# Features that need a session, which transaction mode does not provide. `migrate` can use them, because it connects to
# PostgreSQL directly.
OF_SESSIONS = re.compile(
    r"pg_(try_)?advisory_(un)?lock|\bLISTEN\b|\bPREPARE\b|DECLARE \w+ CURSOR|WITH HOLD|CREATE TEMP|"
    r"execute\(f?\"SET (?!LOCAL)|\.iterator\(|set_config\([^)]*false\)|prepare=True|prepare_threshold"
)
# Statements with which a test changes a session setting. The test must reset the setting. Otherwise the next test can
# get this connection from the pool and, for example, wait only 100 ms for a lock instead of 3 s.
SET_BY_A_TEST = re.compile(r"cursor\.execute\(\"SET (?!LOCAL|CONSTRAINTS)(\w+)")
# The files that use session features. This is safe, because `migrate` bypasses the pooler, and the settings prepare
# statements only if DATABASE_PREPARE allows it.
SESSIONS = {"config/management/commands/migrate.py", "config/settings.py"}


@pytest.mark.long
def test_the_pooler_gives_each_transaction_any_free_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(pooler.SWITCH, "1")
    template.copy_to(tmp_path)
    with engines.running(tmp_path, durable=False, redis_url="redis://elsewhere") as own:
        with pooler.in_front_of(own.database_url, tmp_path) as address:
            clients = [psycopg.connect(address, autocommit=True) for _ in range(5)]
            servers = {client.execute("SELECT pg_backend_pid()").fetchone() for client in clients}
            for client in clients:
                client.close()
    assert len(servers) == 1


def test_the_service_needs_no_session_state() -> None:
    paths = [path for app in APPS for path in Path(app).rglob("*.py") if "migrations" not in path.parts]
    found = {str(path) for path in paths if OF_SESSIONS.search(path.read_text())}
    assert found == SESSIONS
    assert all(database["DISABLE_SERVER_SIDE_CURSORS"] for database in settings.DATABASES.values())


def test_tests_leave_sessions_as_they_were() -> None:
    paths = [path for path in Path("tests").rglob("*.py") if not {"node_modules", "bench"} & {*path.parts}]
    texts = {str(path): path.read_text() for path in paths}
    left = {
        (path, name)
        for path, text in texts.items()
        for name in SET_BY_A_TEST.findall(text)
        if f"RESET {name}" not in text and f"SET {name} = DEFAULT" not in text
    }
    assert left == set()
