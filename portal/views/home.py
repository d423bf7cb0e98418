"""The first page after signing in."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from checkout.models import Checkout
from payments import money
from portal.access import merchant_required
from portal.models import Membership


@merchant_required
def home(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The merchant's latest checkouts, and where its API is."""
    latest = Checkout.objects.filter(merchant=membership.merchant).order_by("-created_at", "-id")[:20]
    rows = [
        {
            "order_id": checkout.merchant_order_id,
            "uuid": checkout.pk,
            "status": checkout.status,
            "status_label": checkout.get_status_display(),
            "amount": money.display(checkout.amount, checkout.currency),
            "created": checkout.created_at,
        }
        for checkout in latest
    ]
    context = {
        "merchant_name": membership.merchant.name,
        "environment": settings.ENVIRONMENT,
        "base_url": settings.BASE_URL,
        "checkouts": rows,
    }
    return render(request, "portal/home.html", context)
