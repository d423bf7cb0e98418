"""Outside local, the service starts only on the intended database. Otherwise it gives the reason in one sentence."""

import runpy
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from celery import signals
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import OperationalError, ProgrammingError, connection
from django.test import Client
from django.urls import clear_url_caches, get_resolver
from pytest_django.fixtures import Settings

from config import celery, startup_checks
from config.lib import crypto
from config.lib.database import limits
from config.variables.startup import WRONG_CONFIGURATION
from hosted_page.sms import senders
from portal import key_check
from portal.models import Canary

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _hosted(settings: Settings) -> Iterator[None]:
    """Set up a sandbox whose database passes all checks: it has the role's limits and a valid canary row."""
    settings.LOCAL, settings.ENVIRONMENT = False, "sandbox"
    Canary.objects.all().delete()
    Canary.objects.create(
        sealed=key_check.WORD,
        digest=crypto.keyed_digest(key_check.WORD, key_check.WORD),
        environment="sandbox",
    )
    with connection.cursor() as cursor:
        for limit, milliseconds in limits.LIMITS.items():
            cursor.execute(f"SET LOCAL {limit} = {milliseconds}")
    yield
    crypto._field_cipher.cache_clear()


@pytest.fixture(autouse=True)
def _connection_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the connection open, because the test's transaction runs on it."""
    monkeypatch.setattr(connection, "close", lambda: None)
    monkeypatch.setattr(connection, "close_pool", lambda: None)


def replaced_in_sql(old: str, new: str) -> AbstractContextManager[None]:
    """Replace the text `old` in every SQL statement by `new` until the block ends."""
    return connection.execute_wrapper(lambda execute, sql, *more: execute(sql.replace(old, new), *more))


def refused(words: str) -> None:
    """Fail unless web, worker and probe refuse the database with a sentence that contains these words."""
    with pytest.raises(ImproperlyConfigured) as raised:
        startup_checks.require_valid_database()
    (sentence,) = [line for line in str(raised.value).splitlines() if words in line]
    assert sentence.startswith("ENVIRONMENT=sandbox: ")
    with pytest.raises(SystemExit) as ended:
        celery._check_database()
    assert ended.value.code == WRONG_CONFIGURATION
    answer = Client().get("/readyz")
    assert answer.status_code == 503 and words in answer.content.decode()


def test_a_matching_database_passes_the_checks() -> None:
    startup_checks.require_valid_database()
    assert Client().get("/readyz").content == b"ready\n"


@pytest.mark.rule("environment.database")
@pytest.mark.parametrize("guard", startup_checks.REQUIRED_TRIGGERS)
def test_a_database_without_a_trigger_is_refused(guard: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = %s", [guard])
        table = cursor.fetchone()[0]
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {guard}")
    refused(guard)


def test_every_trigger_is_checked() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1")
        found = [name for (name,) in cursor.fetchall()]
    assert found == list(startup_checks.REQUIRED_TRIGGERS)


@pytest.mark.rule("environment.database")
@pytest.mark.parametrize("limit", [name for name in limits.LIMITS if name != "tcp_user_timeout"])
@pytest.mark.parametrize("milliseconds", [0, 60_000])
def test_a_role_without_its_time_limits_is_refused(limit: str, milliseconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL {limit} = {milliseconds}")
    refused(f"lacks its time limits ({limit}). Run manage.py migrate.")


@pytest.mark.rule("environment.database")
def test_other_field_keys_are_refused(settings: Settings) -> None:
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    crypto._field_cipher.cache_clear()
    refused("FIELD_KEYS are not those that the database was written with.")


def test_an_additional_field_key_is_accepted(settings: Settings) -> None:
    settings.FIELD_KEYS = [Fernet.generate_key().decode(), *settings.FIELD_KEYS]
    crypto._field_cipher.cache_clear()
    startup_checks.require_valid_database()


@pytest.mark.rule("secret.keys")
def test_another_lookup_key_is_refused(settings: Settings) -> None:
    settings.LOOKUP_KEY = "another-one"
    refused("LOOKUP_KEY")


@pytest.mark.rule("secret.keys")
def test_an_additional_lookup_key_is_accepted(settings: Settings) -> None:
    settings.LOOKUP_KEY, settings.LOOKUP_KEY_FALLBACKS = "another-one", [settings.LOOKUP_KEY]
    startup_checks.require_valid_database()
    settings.LOOKUP_KEY, settings.LOOKUP_KEY_FALLBACKS = settings.LOOKUP_KEY_FALLBACKS[0], ["another-one"]
    startup_checks.require_valid_database()


@pytest.mark.rule("environment.database")
def test_a_database_of_another_environment_is_refused() -> None:
    Canary.objects.update(environment="local")
    refused("The database was written by ENVIRONMENT=local. Use another database.")


@pytest.mark.rule("environment.database")
def test_all_problems_of_a_database_are_reported_together() -> None:
    Canary.objects.update(environment="production")
    with replaced_in_sql("SHOW server_version_num", "SELECT 150099"):
        refused("PostgreSQL must be 16 or newer, not 15.")
        refused("Use another database.")


@pytest.mark.rule("environment.database")
def test_a_database_that_was_never_migrated_is_refused() -> None:
    Canary.objects.all().delete()
    refused("Run manage.py migrate.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_the_tcp_time_limit_is_checked_on_tcp_connections() -> None:
    with replaced_in_sql("inet_client_addr()", "'192.0.2.1'::inet"):
        refused("lacks its time limits (tcp_user_timeout).")


def test_a_database_that_lacks_a_table_is_refused() -> None:
    def ask(execute: Any, sql: str, *more: Any) -> Any:
        if "portal_canary" in sql:
            raise ProgrammingError('relation "portal_canary" does not exist')
        return execute(sql, *more)

    with connection.execute_wrapper(ask):
        refused("The database lacks a table. Run manage.py migrate.")


@pytest.mark.rule("environment.database")
def test_an_old_postgresql_is_refused() -> None:
    with replaced_in_sql("SHOW server_version_num", "SELECT 150099"):
        refused("PostgreSQL must be 16 or newer, not 15.")
    with replaced_in_sql("SHOW server_version_num", "SELECT 160000"):
        startup_checks.require_valid_database()


def test_an_unreachable_database_does_not_stop_the_start() -> None:
    def fail(*_: object) -> None:
        raise OperationalError("away")

    with connection.execute_wrapper(fail):
        startup_checks.require_valid_database()
        assert Client().get("/readyz").content == b"the database does not answer\n"


def test_worker_and_beat_run_the_checks_before_they_start() -> None:
    for process in (signals.worker_init, signals.beat_init):
        assert celery._check_database in process._live_receivers(None)
    first, then = (
        signals.worker_init._live_receivers(None).index(begun)
        for begun in (celery._check_database, celery._start_tickers)
    )
    assert first < then


def test_the_web_process_runs_the_checks_before_it_serves() -> None:
    Canary.objects.all().delete()
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(startup_checks.__file__).with_name("wsgi.py")))
    assert ended.value.code == WRONG_CONFIGURATION


def test_the_web_process_imports_its_views_before_it_serves() -> None:
    """Otherwise, the first payer of a process would wait a quarter of a second for the import of the views."""
    clear_url_caches()
    runpy.run_path(str(Path(startup_checks.__file__).with_name("wsgi.py")))
    assert "url_patterns" in vars(get_resolver())


def test_web_and_worker_stop_if_the_sms_sender_cannot_be_loaded(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.SMS_SENDER = "adapter.of.nobody.Sender"
    monkeypatch.setattr(senders, "current_sender", cache(senders.current_sender.__wrapped__))
    for start in (
        lambda: runpy.run_path(str(Path(startup_checks.__file__).with_name("wsgi.py"))),
        celery._check_sms_sender,
    ):
        with pytest.raises(SystemExit) as ended:
            start()
        assert ended.value.code == WRONG_CONFIGURATION
        assert "SMS_SENDER names no class that is installed" in capsys.readouterr().err


def test_local_mode_skips_the_checks(settings: Settings) -> None:
    settings.LOCAL = True
    Canary.objects.all().delete()
    startup_checks.require_valid_database()
    assert Client().get("/readyz").status_code == 200


class TestMigrate:
    def stored_limits(self) -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT unnest(setconfig) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase"
                " WHERE d.datname = current_database() AND setrole = (SELECT oid FROM pg_roles"
                " WHERE rolname = current_user)"
            )
            return [text for (text,) in cursor.fetchall()]

    def test_sets_time_limits_that_a_restored_database_lacks(self) -> None:
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {name} RESET ALL")
        assert self.stored_limits() == []
        call_command("migrate", verbosity=0)
        assert {text.partition("=")[0] for text in self.stored_limits()} == set(limits.LIMITS)

    def test_plants_the_canary(self) -> None:
        assert "portal.0002_sql" in {f"{app}.{name}" for app, name in _applied()}


def _applied() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return list(cursor.fetchall())
