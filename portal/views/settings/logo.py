"""The upload and the removal of a merchant's logo. Rules brand.logo, brand.logo_upload."""

from typing import Any

from django.contrib import messages
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from hosted_page.logo import storage
from hosted_page.logo.drawing import Drawn
from portal import audit
from portal.access import requires
from portal.models import Membership

HERE = "portal_settings"


def take_in_memory(request: HttpRequest) -> None:
    """Make Django keep the uploaded file in memory instead of on disk.

    If the request's files have already been read, the function does nothing. This happens when the request
    continues after a proof of identity.
    """
    if not hasattr(request, "_files"):
        request.upload_handlers = [MemoryFileUploadHandler(request)]


def read_sent_logo(request: HttpRequest) -> Drawn | None:
    """Return the uploaded picture as it will be served, or None without an upload. Raises decoding.Unusable."""
    file: Any = request.FILES.get("logo")
    return None if file is None else storage.read_upload(file.read())


def save_logo(request: HttpRequest, membership: Membership, drawn: Drawn) -> None:
    """Store the uploaded picture as the merchant's logo."""
    file: Any = request.FILES["logo"]
    with transaction.atomic(durable=True):
        storage.save_logo(membership.merchant_id, drawn)
        audit.record(request, membership, "logo_changed", bytes=file.size)
    messages.success(request, "Your logo is shown from now on.")


@requires("change_settings", form_of=HERE)
def remove(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Delete the merchant's logo. Customers then see the merchant's initial."""
    with transaction.atomic(durable=True):
        is_removed = storage.remove(membership.merchant_id)
        if is_removed:
            audit.record(request, membership, "logo_removed")
    if is_removed:
        messages.success(request, "The logo is removed. Customers now see the first letter of your name.")
    return redirect(HERE)
