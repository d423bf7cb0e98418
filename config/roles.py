"""The two database roles: the owner of the tables, which `migrate` uses, and the role of the service.

The service can neither disable the owner's triggers nor truncate a table. Rule environment.roles.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.db import connections
from django.db.utils import ProgrammingError
from psycopg import sql

from config import statements

_GRANTS = (
    "GRANT CONNECT ON DATABASE {database} TO {role}",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}",
)
_REVOKE_STATEMENTS = {
    "DELETE": "REVOKE DELETE ON {table} FROM {role}",
    "UPDATE": "REVOKE UPDATE ON {table} FROM {role}",
}
_EXTRA_GRANTS = (
    "GRANT UPDATE (email) ON hosted_page_optin TO {role}",  # for re-encryption; a trigger refuses the rest
    "GRANT DELETE ON portal_checkoutnote TO {role}",  # for the erasure of a person
    "GRANT EXECUTE ON FUNCTION erase_opt_ins(uuid[], text) TO {role}",
    "GRANT EXECUTE ON FUNCTION digest_opt_in_again(uuid, text, text) TO {role}",
    "GRANT EXECUTE ON FUNCTION make_partition(name, date, date) TO {role}",
    "GRANT EXECUTE ON FUNCTION drop_partition(name, timestamptz) TO {role}",
)
# Only environments other than production can simulate the passage of time.
_SANDBOX_GRANTS = ("GRANT EXECUTE ON FUNCTION advance_history(uuid, integer) TO {role}",)
# The owner's connection never uses the service's host, port or password, because these can belong to a pooler.
_CLEARED_SETTINGS = {"HOST": "", "PORT": "", "PASSWORD": ""}
_ROLE = "CREATE ROLE {role} LOGIN PASSWORD {password}"


@contextmanager
def as_owner(connection: Any) -> Iterator[bool]:
    """Connect as the owner of the tables for the duration of the block, and yield True.

    If DATABASE_OWNER_URL is not set, keep the connection and yield False.
    """
    if not settings.DATABASE_OWNER:
        yield False
        return
    service = connection.settings_dict
    connection.close()
    connection.settings_dict = service | _CLEARED_SETTINGS | settings.DATABASE_OWNER
    connection.settings_dict["OPTIONS"] = settings.DATABASE_OWNER["OPTIONS"] | {"pool": False}
    try:
        yield True
    finally:
        connection.close()
        connection.settings_dict = service


def grant(alias: str) -> None:
    """Grant the service's role exactly the privileges that it needs on all existing tables.

    Create the role if it is missing. Call this function as the owner. Raises CommandError if the owner may
    not create roles.
    """
    service = settings.DATABASES[alias]
    role, password = str(service["USER"]), str(service.get("PASSWORD", ""))
    with connections[alias].cursor() as cursor:
        cursor.execute(statements.FIND_ROLE, [role])
        if cursor.fetchone() is None:
            _make(cursor, role, password)
        named = {"role": sql.Identifier(role), "database": sql.Identifier(str(service["NAME"]))}
        for words in _GRANTS:
            cursor.execute(sql.SQL(words).format(**named))
        cursor.execute(statements.FIND_FORBIDDEN_VERBS)
        for verb, table in cursor.fetchall():
            cursor.execute(sql.SQL(_REVOKE_STATEMENTS[verb]).format(table=sql.Identifier(table), **named))
        for words in (*_EXTRA_GRANTS, *(_SANDBOX_GRANTS if settings.SANDBOX else ())):
            cursor.execute(sql.SQL(words).format(**named))


def _make(cursor: Any, role: str, password: str) -> None:
    try:
        cursor.execute(sql.SQL(_ROLE).format(role=sql.Identifier(role), password=sql.Literal(password)))
    except ProgrammingError:
        raise CommandError(
            f"The role {role} of DATABASE_URL does not exist, and the owner may not make it: "
            f'CREATE ROLE "{role}" LOGIN PASSWORD …, then run migrate again.'
        ) from None
