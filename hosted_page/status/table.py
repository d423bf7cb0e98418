"""The table of pages. It has one cell of texts for each situation of an order's money and each viewer.

A page determines its situation and its viewer, and shows the cell for both. A viewer has no cell for a situation that
never occurs for this viewer, or does not concern the viewer's own money. This table is the source of docs/pages.md.
Rules pay.honest_page, page.viewer. Decision 0059.
"""

from hosted_page.status.cells import Cell, Situation, Viewer
from hosted_page.status.paid_cells import PAID, RETURNED
from hosted_page.status.unpaid_cells import UNPAID

TABLE: dict[Situation, dict[Viewer, Cell]] = UNPAID | PAID | RETURNED


def cell_of(situation: Situation, viewer: Viewer) -> Cell:
    """Return the cell for a situation and a viewer. Raises KeyError if there is no such cell."""
    return TABLE[situation][viewer]
