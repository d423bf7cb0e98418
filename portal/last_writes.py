"""Log positions of people's latest changes: a replica serves people only once it has their changes.

Rule replica.own_writes. The service stores the position of the database's log after each audited change by a
merchant's people or keys, and after each change by an operator. The position is stored under the merchant's
id, or under one id for all operators. It is a position and not a time, because a time would not be exact.
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


def record_write(whose: UUID) -> None:
    """Store the log position for this merchant, or for the operators, once the transaction is committed."""
    if lag.ALIAS in connections.settings:
        transaction.on_commit(partial(_store_position, whose))


def _store_position(whose: UUID) -> None:
    queries.execute(statements.NOTE_LAST_WRITE, [whose])


def read_after_writes(call: Callable[[], Read], whose: UUID) -> Read:
    """Call a function that only reads data.

    It reads from the replica if the replica has reached the stored position, and otherwise from the primary.
    See config.lib.database.replica.
    """
    return replica.read_on_replica(call, since=partial(stored_position, whose))


def response_after_writes(
    view: "partial[HttpResponseBase]", request: HttpRequest, whose: UUID
) -> HttpResponseBase:
    """Return a view's response. It is read on the replica if the view and the request's method allow that."""
    if replica.may_read(view.func, request.method):
        return read_after_writes(lambda: _render_now(view()), whose)
    return view()


def _render_now(response: HttpResponseBase) -> HttpResponseBase:
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


def stored_position(whose: UUID) -> int:
    """Return the stored log position, or 0 if there is no replica or if no change was stored."""
    if lag.ALIAS not in connections.settings:
        return 0
    row = queries.row(statements.READ_LAST_WRITE, [whose])
    return int(row[0]) if row else 0
