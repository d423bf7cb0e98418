"""A database of `make run` that migrations made which have been written anew since."""

import json

import pytest
from django.db import connection

from config.local import CannotStart, migrated

pytestmark = pytest.mark.django_db


def comment() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT obj_description('django_migrations'::regclass, 'pg_class')")
        kept: dict[str, str] = json.loads(cursor.fetchone()[0] or "{}")
        return kept


def forget() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'payments' AND name = '0002_guards'")


@pytest.fixture
def _new(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guards of payments are about to be applied; applying them is left to the tests' own database."""
    forget()
    monkeypatch.setattr(migrated, "call_command", lambda *_, **__: None)


@pytest.mark.usefixtures("_new")
class TestMigrate:
    def test_keeps_what_it_has_applied_and_is_content_with_it(self) -> None:
        migrated.migrate()
        assert list(comment()) == ["payments.0002_guards"]
        migrated.migrate()

    def test_refuses_a_database_that_an_older_file_has_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        migrated.migrate()
        ours = migrated._digests()
        changed = ours | {"payments.0002_guards": "another", "payments.0003_later": "new"}
        monkeypatch.setattr(migrated, "_digests", lambda: changed)
        with pytest.raises(CannotStart, match=r"older payments\.0002_guards\. Remove the folder \.local"):
            migrated.migrate()
        assert list(comment()) == ["payments.0002_guards"]

    def test_takes_what_has_been_added_since(self, monkeypatch: pytest.MonkeyPatch) -> None:
        migrated.migrate()
        ours = migrated._digests()
        monkeypatch.setattr(migrated, "_digests", lambda: ours | {"payments.0003_later": "new"})
        migrated.migrate()
        assert list(comment()) == ["payments.0002_guards", "payments.0003_later"]

    def test_says_nothing_about_what_somebody_else_has_migrated(self) -> None:
        assert comment() == {}
        migrated.migrate()
        assert "payments.0001_initial" not in comment()

    def test_knows_ours_alone(self) -> None:
        apps = {name.partition(".")[0] for name in migrated._digests()}
        assert {"payments", "checkout", "webhooks", "portal"} <= apps
        assert not {"auth", "sessions", "mfa"} & apps
