"""What people have just changed: a replica serves them only once it has that too (rule replica.own_writes).

After each change of a merchant's people or keys that the audit log has, and of an operator, the position of the
database's log is noted: by the merchant's id, or for all operators together. A position is exact, where a time is not.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import connection, connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.template.response import SimpleTemplateResponse

from config.lib.database import lag, replica

Read = TypeVar("Read")
OPERATORS = UUID(int=0)
# A position that the log has not reached is of another server, whose database was restored here.
_HERE = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
# Of two at once the later one waits, and is further along then.
_NOTE = f"""
INSERT INTO portal_lastwrite (whose, position) VALUES (%s, {_HERE})
ON CONFLICT (whose) DO UPDATE SET position = {_HERE}
"""  # noqa: S608 - of our own constants alone
_READ = f"SELECT position FROM portal_lastwrite WHERE whose = %s AND position <= {_HERE}"  # noqa: S608 - ours


def note(whose: UUID) -> None:
    """Note, once what is being written is committed, that whoever is meant has changed something."""
    if lag.ALIAS in connections.settings:
        transaction.on_commit(partial(_note, whose))


def _note(whose: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [whose])


def read(call: Callable[[], Read], whose: UUID) -> Read:
    """Call the function on the replica, if that has all that was noted here; see config.lib.database.replica."""
    return replica.read(call, since=partial(position, whose))


def shown(view: "partial[HttpResponseBase]", request: HttpRequest, whose: UUID) -> HttpResponseBase:
    """Return a view's response, read like that and rendered if it is marked and looked at; else the view's own."""
    if replica.may_read(view.func, request.method):
        return read(lambda: _rendered(view()), whose)
    return view()


def _rendered(response: HttpResponseBase) -> HttpResponseBase:
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


def position(whose: UUID) -> int:
    """Return where the log was when the last change had been committed, 0 where none was noted or no replica is."""
    if lag.ALIAS not in connections.settings:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_READ, [whose])
        row = cursor.fetchone()
    return int(row[0]) if row else 0
