"""A merchant's logo: uploaded and removed by those who may change the settings. Rules brand.logo, brand.logo_upload."""

from typing import Any

from django.contrib import messages
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from hosted_page.logo import decoding, keeping
from portal import audit, pages
from portal.access import requires
from portal.models import Membership
from portal.views.settings import page


@csrf_exempt  # until it is known who sends it: a stranger's file is never taken apart, not even for its token
@requires("change_settings", form_of=page.HERE)
def keep(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Take an upload for the merchant's logo, kept in memory alone."""
    request.upload_handlers = [MemoryFileUploadHandler(request)]
    return _keep(request, membership)


@csrf_protect
def _keep(request: HttpRequest, membership: Membership) -> HttpResponse:
    file: Any = request.FILES.get("logo")
    if file is None:
        pages.refuse(request, "Choose a file first: a PNG or JPEG of at most 256 KB.")
        return redirect(page.HERE)
    try:
        drawn = keeping.read(file.read())
    except decoding.Unusable as unusable:
        return page.refuse_logo(request, membership, str(unusable))
    with transaction.atomic():
        keeping.keep(membership.merchant_id, drawn)
        audit.record(request, membership, "logo_changed", bytes=file.size)
    messages.success(request, "Your logo is shown from now on.")
    return redirect(page.HERE)


@requires("change_settings", form_of=page.HERE)
def remove(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Delete the merchant's logo; their initial is shown again."""
    with transaction.atomic():
        is_removed = keeping.remove(membership.merchant_id)
        if is_removed:
            audit.record(request, membership, "logo_removed")
    if is_removed:
        messages.success(request, "Removed. Your initial is shown from now on.")
    return redirect(page.HERE)
