"""The top of a record's page: its type, and the parts that several models share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpRequest

from checkout.models import Checkout
from config.lib import clock
from config.lib.admin import columns
from payments.models import Discrepancy
from portal.backoffice import cases, frame
from portal.badges import Badge

NO_STEP = "No action is needed."


class Link(NamedTuple):
    """A link to the page on which an operator takes a step."""

    words: str
    address: str


@dataclass(frozen=True)
class Head:
    """The top of a record's page.

    `summary` says what the record is and explains its state. `next_step` says what to do. `links` lead to the
    pages for this step. `form` is a button that takes a step at once. If `is_waiting` is true, an operator
    has to act. The main button is `form`. Without a form, it is `action`, which is one of the actions of the
    record's admin. Without both, it is the first link.
    """

    summary: str
    next_step: str = NO_STEP
    badge: Badge | None = None
    links: Sequence[Link] = ()
    is_waiting: bool = False
    action: str = ""
    form: Link | None = None

    @property
    def has_loud_link(self) -> bool:
        """Return whether the first link is shown as the main button."""
        return self.is_waiting and not self.action and self.form is None


def link_to(request: HttpRequest, words: str, label: str, key: object) -> list[Link]:
    """Return a list with a link to a row's page. It is empty if there is no row or this operator may not see it."""
    if key is None or not frame.may_see(request, label):
        return []
    return [Link(words, columns.page_address(label, key))]


def link_to_order(request: HttpRequest, checkout_uuid: UUID | None) -> list[Link]:
    return link_to(request, "Open the order", "checkout.checkout", checkout_uuid)


def order_words(checkout_uuid: UUID | None) -> str:
    """Return "order A-20417", or "no order" if the order does not exist."""
    if checkout_uuid is None:
        return "no order"
    order_id = Checkout.objects.filter(pk=checkout_uuid).values_list("merchant_order_id", flat=True).first()
    return f"order {order_id}" if order_id else "no order"


def case_head(
    request: HttpRequest, summary: str, badge: Badge, case: Discrepancy, *links: Link, action: str = ""
) -> Head:
    """Return the head for a record with an open discrepancy. The next step is what the discrepancy's kind requires."""
    case_links = link_to(request, "Open the discrepancy", "payments.discrepancy", case.pk)
    step = f"{case.kind_entry.sentence}. {cases.instructions_of(case, clock.now())}"
    return Head(summary, step, badge, [*links, *case_links], is_waiting=True, action=action)


def open_case(**lookups: Any) -> Discrepancy | None:
    """Return the oldest open discrepancy that matches the lookups."""
    return Discrepancy.objects.filter(closed_at=None, **lookups).order_by("created_at").first()
