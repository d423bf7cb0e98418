"""The log positions of people's latest changes. People read from a replica only if it has their own changes.

Rule replica.own_writes. The service stores the position of the database's log after each audited change by a
merchant's people or keys, and after each change by an operator. The position is stored under the merchant's
id, or under one id for all operators. The service does not store a time, because a time would not be exact.
"""

from functools import partial
from uuid import UUID

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponseBase
from django.template.response import SimpleTemplateResponse

from config.lib.database import lag, queries, replica
from portal import statements

OPERATORS = UUID(int=0)


def record_write(owner_uuid: UUID) -> None:
    """Store the log position when the transaction commits.

    `owner_uuid` is the id of the merchant whose people or keys made the change, or OPERATORS.
    """
    if lag.ALIAS in connections.settings:
        transaction.on_commit(lambda: queries.execute(statements.STORE_LAST_WRITE, [owner_uuid]))


def response_after_writes(
    view: "partial[HttpResponseBase]", request: HttpRequest, owner_uuid: UUID
) -> HttpResponseBase:
    """Return a view's response.

    The view reads from the replica if the view and the request's method allow it, and if the replica has reached the
    stored position. See config.lib.database.replica.
    """
    if replica.may_read(view.func, request.method):
        return replica.read_on_replica(
            lambda: _render_now(view()), since=partial(stored_position, owner_uuid)
        )
    return view()


def _render_now(response: HttpResponseBase) -> HttpResponseBase:
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


def stored_position(owner_uuid: UUID) -> int:
    """Return the stored log position, or 0 if no change was stored or there is no replica."""
    if lag.ALIAS not in connections.settings:
        return 0
    row = queries.row(statements.READ_LAST_WRITE, [owner_uuid])
    return int(row[0]) if row else 0
