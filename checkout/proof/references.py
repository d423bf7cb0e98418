"""References that no foreign key enforces, and the rows that break them (rule money.proof).

A foreign key would lead into or out of a partition, or would lock the row that it refers to. A row and the
row that it refers to were made at about the same time. A proof of new rows therefore reads no old ones.
"""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from checkout.proof import statements
from checkout.proof.statements import Reference
from config.lib import clock
from config.lib.database import queries


class Lost(NamedTuple):
    """Row that breaks a reference. `subject` is the missing id, the row's id or its event's id."""

    subject: UUID
    merchant_uuid: UUID | None
    reference: Reference


def lost(first: UUID, last: UUID) -> Iterator[Lost]:
    """Yield the orphan rows with ids of this range.

    The rows that they refer to are looked for only among ids of the same time.
    """
    within = {"first": first, "last": last}
    within |= {"earliest": clock.first_id_with(first), "latest": clock.last_id_with(last)}
    for reference in statements.REFERENCES:
        for subject, merchant_uuid in queries.rows(reference.sql, within):
            yield Lost(subject, merchant_uuid, reference)
