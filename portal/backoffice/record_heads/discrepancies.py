"""The top of a discrepancy's page: its cause, its age, its remedy, and a link to the page for the remedy."""

from django.db.models.functions import Now
from django.http import HttpRequest

from payments.discrepancies import definitions, kinds
from payments.models import Discrepancy
from portal.backoffice import badges, cases
from portal.backoffice.order import format_when
from portal.backoffice.record_heads.head import Head, Link, link_to, link_to_order, page_of_remedies

ON_DISPUTE = (
    kinds.DISPUTED,
    kinds.DISPUTE_LOST,
    kinds.DISPUTE_STATUS_UNKNOWN,
    kinds.DISPUTE_OF_ANOTHER_AMOUNT,
)
ON_MERCHANT = (kinds.SMS_BUDGET_OF_MERCHANT,)


def head_of_discrepancy(row: Discrepancy, request: HttpRequest) -> Head:
    """Return the head of a discrepancy: its cause, its age, and what an operator must do on which page."""
    read = cases.with_order_and_deadline(Discrepancy.objects.filter(pk=row.pk)).annotate(read_at=Now()).get()
    case = cases.build_case(read, read.read_at, None)
    badge = badges.of_discrepancy(row, f"Open for {case.age}", is_old=case.is_old)
    # The heading already names the order and the amounts.
    explanation = "" if case.explanation.startswith(case.headline) else case.explanation
    whose = f" for {row.merchant}" if row.merchant else ""
    summary = f"{explanation} Reported{whose} {format_when(row.created_at)}.".strip()
    links = [*_links(row, request), *link_to_order(request, case.order_uuid)]
    if row.closed_at:
        return Head(
            summary, f"No action is needed: it was closed {format_when(row.closed_at)}.", badge, links
        )
    remedies = cases.remedies_of(row)
    step = f"{case.instructions} {page_of_remedies(remedies, 'discrepancy')}".strip()
    action = definitions.CLOSE.action if definitions.CLOSE in remedies else ""
    return Head(summary, step, badge, links, names_button=bool(remedies), action=action)


def _links(row: Discrepancy, request: HttpRequest) -> list[Link]:
    """Return links to the pages on which an operator decides the discrepancy, with the main page first."""
    links = link_to(request, "Open the operation", "payments.operation", row.operation_id)
    if row.kind_entry in ON_DISPUTE:
        links = link_to(request, "Open the dispute", "payments.dispute", row.subject)
    elif row.kind_entry in ON_MERCHANT:
        links = link_to(request, "Open the merchant", "payments.merchant", row.merchant_id)
    if row.operation is not None:
        links += link_to(request, "Open the payment", "payments.payment", row.operation.payment_id)
    return links
