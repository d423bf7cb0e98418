"""People's latest changes: a replica serves these people only once it has their changes.

Rule replica.own_writes. The service notes the position of the database's log after each change of a
merchant's people or keys that is in the audit log, and after each change of an operator. The position is
stored under the merchant's id, or under one id for all operators. A position is exact, and a time is not.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.template.response import SimpleTemplateResponse

from config.lib.database import lag, queries, replica
from portal import statements

Read = TypeVar("Read")
OPERATORS = UUID(int=0)


def note_write(whose: UUID) -> None:
    """Note that this merchant's people, or the operators, have changed something, once it is committed."""
    if lag.ALIAS in connections.settings:
        transaction.on_commit(partial(_note, whose))


def _note(whose: UUID) -> None:
    queries.execute(statements.NOTE_LAST_WRITE, [whose])


def read_after_writes(call: Callable[[], Read], whose: UUID) -> Read:
    """Call the function on the replica, if it has all changes noted here; see config.lib.database.replica."""
    return replica.read_on_replica(call, since=partial(position, whose))


def response_after_writes(
    view: "partial[HttpResponseBase]", request: HttpRequest, whose: UUID
) -> HttpResponseBase:
    """Return a view's response, read on the replica and rendered if the view and the method allow that."""
    if replica.may_read(view.func, request.method):
        return read_after_writes(lambda: _rendered(view()), whose)
    return view()


def _rendered(response: HttpResponseBase) -> HttpResponseBase:
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


def position(whose: UUID) -> int:
    """Return the log's position after the last committed change; 0 without such a change or a replica."""
    if lag.ALIAS not in connections.settings:
        return 0
    row = queries.row(statements.READ_LAST_WRITE, [whose])
    return int(row[0]) if row else 0
