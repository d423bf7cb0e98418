"""The download of a customer's data, for a merchant whose customer asks for a copy (rule privacy.export)."""

from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from hosted_page.privacy import data_export, data_subjects
from portal import audit, pages
from portal.access import requires
from portal.models import Membership
from portal.orders import order


@requires("reveal", sensitive=True, form_of="portal_checkout")
def download_customer_data(request: HttpRequest, membership: Membership, checkout_uuid: UUID) -> HttpResponse:
    """Return a file with the lead's data that the merchant may give to the lead, and record the download."""
    checkout = order.read_order(membership.merchant, checkout_uuid).checkout
    try:
        person = data_subjects.of_customer(checkout.lead_id or UUID(int=0))
    except data_subjects.Unknown:
        pages.report_refusal(request, "We have no data of this customer.")
        return redirect("portal_checkout", checkout_uuid)
    content = data_export.export_data(person, membership.merchant)
    audit.record(request, membership, "customer_exported", checkout=str(checkout.pk))
    response = HttpResponse(
        orjson.dumps(content, option=orjson.OPT_INDENT_2), content_type="application/json"
    )
    response["Content-Disposition"] = f'attachment; filename="customer-{checkout.pk}.json"'
    return response
