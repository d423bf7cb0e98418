"""The list of network addresses that deliveries come from, for merchants' firewalls (rule target.source_addresses)."""

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

PUBLISHED = (
    "Deliveries come from the networks in addresses. The list can change, so read this document every day. "
    "A delivery from such an address still needs a valid signature."
)
NOT_PUBLISHED = (
    "This service publishes no addresses for its deliveries. Do not filter deliveries by address. Verify "
    "their signatures."
)


def message() -> str:
    """Return one or two sentences about the list. If the list is empty, they explain why."""
    return PUBLISHED if settings.WEBHOOK_SOURCE_ADDRESSES else NOT_PUBLISHED


@csrf_exempt  # so that a POST gets 405 instead of 403 for a missing CSRF token
@require_safe
def serve_source_addresses(_request: HttpRequest) -> JsonResponse:
    """Serve the list at GET /api/delivery-addresses.json."""
    return JsonResponse(
        {"addresses": settings.WEBHOOK_SOURCE_ADDRESSES, "message": message()},
        headers={"Cache-Control": "public, max-age=300"},
    )
