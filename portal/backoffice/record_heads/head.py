"""The top of a record's page: its type, and the parts that several models share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.http import HttpRequest

from checkout.models import Checkout
from config.lib import clock
from config.lib.admin import columns
from payments.discrepancies.definitions import Remedy
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
    pages for this step. `form` is a button that takes a step at once. `names_button` says whether `next_step`
    asks the operator to use a button of this page. This button is then filled. It is `form`. Without a form,
    it is `action`, which is one of the actions of the record's admin. Without both, it is the first link.
    """

    summary: str
    next_step: str = NO_STEP
    badge: Badge | None = None
    links: Sequence[Link] = ()
    names_button: bool = False
    action: str = ""
    form: Link | None = None

    @property
    def has_loud_link(self) -> bool:
        """Return whether the first link is shown as the main button."""
        return self.names_button and not self.action and self.form is None


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


def case_head(request: HttpRequest, summary: str, badge: Badge, case: Discrepancy, *links: Link) -> Head:
    """Return the head for a payment, refund or dispute with an open discrepancy.

    The next step is what the discrepancy's kind requires. The first link leads to the page with the buttons
    for this step.
    """
    remedies = cases.remedies_of(case)
    on_page = {
        "operation": link_to(request, "Open the operation", "payments.operation", case.operation_id),
        "discrepancy": link_to(request, "Open the discrepancy", "payments.discrepancy", case.pk),
    }
    main = on_page.pop(remedies[0].page) if remedies else []
    others = [link for found in on_page.values() for link in found]
    step = case_step(case, remedies)
    return Head(summary, step, badge, [*main, *links, *others], names_button=bool(main))


def case_step(case: Discrepancy, remedies: Sequence[Remedy], *, page: str = "", note: str = "") -> str:
    """Return what to do about a discrepancy, on the page of a record that it is about.

    `page` is this page, as in `Remedy.page`. `note` is a sentence that comes before the instructions.
    """
    instructions = cases.instructions_of(case, clock.now())
    words = (f"{case.kind_entry.sentence}.", note, instructions, page_of_remedies(remedies, page))
    return " ".join(filter(None, words))


def page_of_remedies(remedies: Sequence[Remedy], page: str) -> str:
    """Return a sentence that names the page with the buttons of the remedies, or "" if this is that page."""
    if not remedies or remedies[0].page == page:
        return ""
    verbs = " and ".join(remedy.words for remedy in remedies)
    return f"{verbs} {'are' if len(remedies) > 1 else 'is'} on the {remedies[0].page}’s page."


def open_case(**lookups: Any) -> Discrepancy | None:
    """Return the oldest open discrepancy that matches the lookups."""
    return Discrepancy.objects.filter(closed_at=None, **lookups).order_by("created_at").first()
