"""The endpoint of the merchant API for opt-in links."""

from uuid import UUID

from rest_framework import serializers as drf
from rest_framework.request import Request
from rest_framework.response import Response

from checkout.models import Checkout
from config.lib.api import fields
from config.lib.api.described import DescribedOperation, DescribedOperations, DescribedResponse
from config.lib.api.responses import OpenChoice, Out
from config.lib.api.view import ApiView
from hosted_page.models import OptIn
from hosted_page.opt_in import link
from payments.cause import caller_of


class OptInLinkQuery(fields.Query):
    """Query of the endpoint: the place where the merchant shows the link."""

    placement = fields.OneOf(
        tuple(placement.value for placement in link.PLACEMENTS),
        default=OptIn.Placement.EMAIL_LINK.value,
        help_text="Where you show the link.",
    )


class OptInLinkOut(Out):
    """A link, for the place where the merchant shows it."""

    url = drf.URLField(allow_null=True, help_text="The link to the box. Null while you have opt-in off.")
    placement = OpenChoice(link.PLACEMENTS, help_text="Where the box was shown.")


class OptInLink(ApiView):
    """Endpoint that returns a signed link for a merchant's mail or app."""

    scopes = {"GET": "checkouts:read"}
    queries = {"GET": OptInLinkQuery}

    def get(self, request: Request, checkout_uuid: UUID) -> Response:
        merchant = caller_of(request).merchant
        checkout = Checkout.objects.only("pk").get(pk=checkout_uuid, merchant=merchant)
        placement = self.query["placement"]
        url = link.url(checkout, placement) if merchant.opt_in_enabled else None
        return Response({"data": OptInLinkOut.write({"url": url, "placement": placement})})


ENDPOINTS: DescribedOperations = {
    (OptInLink, "GET"): DescribedOperation(
        "read_opt_in_link",
        "Get a link to your opt-in box",
        "For the mail or the app in which you inform a customer about their order. The link opens a page "
        "with your marketing box, and each tick sends `marketing.opted_in` with this `placement`. The link "
        "works for 90 days. `url` is null while you have opt-in off.",
        {200: DescribedResponse("The link.", OptInLinkOut)},
        query=OptInLinkQuery,
    )
}
