"""Finds orphan rows, which break references that no foreign key enforces (rule money.proof).

These references are not foreign keys, because a foreign key would cross partitions or lock the referenced row. A row
and the row that it refers to are created at about the same time, so a proof of new rows does not read old rows.
"""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from checkout.proof import statements
from checkout.proof.statements import Reference
from config.lib import clock
from config.lib.database import queries


class OrphanRow(NamedTuple):
    """A row with a broken reference. `subject` is the missing id, the row's id, or the id of the row's event."""

    subject: UUID
    merchant_uuid: UUID | None
    reference: Reference


def find_orphan_rows(first: UUID, last: UUID) -> Iterator[OrphanRow]:
    """Yield the orphan rows whose ids are in this range.

    The query looks for the referenced row only among ids from about the same time.
    """
    within = {"first": first, "last": last}
    within |= {"earliest": clock.first_id_of_same_time(first), "latest": clock.last_id_of_same_time(last)}
    for reference in statements.REFERENCES:
        for subject, merchant_uuid in queries.rows(reference.sql, within):
            yield OrphanRow(subject, merchant_uuid, reference)
