"""The preview on the settings page: a page of the customer's journey, and a warning if the colour is hard to read."""

from typing import NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from hosted_page import brand, preview
from payments.models import Merchant
from payments.settings_form import AppearanceForm
from portal import pages
from portal.access import requires
from portal.models import Membership

DARKENED = (
    "Both white and black text would be hard to read on this colour. Customers see a slightly darker colour."
)
FAINT = "This colour is nearly as light as the page. A darker colour shows where the band and the button end."


class Preview(NamedTuple):
    """The address of the page in the preview's frame, and a warning about the colour."""

    address: str
    warning: str


def preview_of(merchant: Merchant, form_values: QueryDict | dict[str, str]) -> Preview:
    """Return the preview for the form's values. If a name or colour is invalid, the saved value replaces it."""
    form = AppearanceForm(form_values)
    form.is_valid()
    saved = {"name": merchant.name, "brand_colour": merchant.brand_colour}
    look = saved | {name: value for name, value in form.cleaned_data.items() if name not in form.errors}
    return Preview(
        f"{reverse('portal_preview_page')}?{urlencode(look)}", _colour_warning(look["brand_colour"])
    )


def _colour_warning(colour: str) -> str:
    if brand.is_faint(colour):
        return FAINT
    return DARKENED if brand.is_darkened(colour) else ""


@requires("view")
def show_preview(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the part of the settings page that changes while a person types.

    If a browser opens the address as a page, redirect to the settings, because the part has no style and no frame.
    """
    if not pages.is_part_requested(request, ""):
        return redirect("portal_settings")
    context = {"preview": preview_of(membership.merchant, request.GET)}
    return pages.show_page(request, membership, "portal/_preview.html", context)


@requires("view")
def show_preview_page(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the page in the preview's frame."""
    form = AppearanceForm(request.GET)
    saved = membership.merchant
    look = form.cleaned_data if form.is_valid() else {"name": saved.name, "brand_colour": saved.brand_colour}
    return preview.preview_page(request, saved, name=look["name"], colour=look["brand_colour"])
