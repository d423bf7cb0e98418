"""The table of pages: one cell of words for each situation of an order's money and each viewer.

A page finds its situation and its viewer, and shows the cell of both. A viewer has no cell in a situation that
never occurs for this viewer, or that does not concern the viewer's own money. docs/pages.md is generated from this
table. Rules pay.honest_page, page.viewer. Decision 0059.
"""

from hosted_page.status.cells import Cell, Situation, Viewer
from hosted_page.status.paid_cells import PAID, RETURNED
from hosted_page.status.unpaid_cells import UNPAID

TABLE: dict[Situation, dict[Viewer, Cell]] = UNPAID | PAID | RETURNED


def cell_of(situation: Situation, viewer: Viewer) -> Cell:
    """Return the cell of a situation and a viewer. Raises KeyError if the viewer has no cell in the situation."""
    return TABLE[situation][viewer]
