"""Notes on an order, which the merchant's people write for each other (rule portal.notes)."""

from uuid import UUID

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from config.lib import quota
from portal import audit, pages
from portal.access import requires
from portal.models import CheckoutNote, Membership
from portal.orders import order

MAX_NOTES = 100  # per order


class NoteForm(forms.Form):
    """The form for the text of a note."""

    text = forms.CharField(
        max_length=CheckoutNote.MAX_LETTERS, error_messages={"required": "Write something first."}
    )


@requires("note", form_of="portal_checkout")
def write_note(request: HttpRequest, membership: Membership, checkout_uuid: UUID) -> HttpResponse:
    """Add a note to the order."""
    checkout = order.read_order(membership.merchant, checkout_uuid).checkout
    form = NoteForm(request.POST)
    if not form.is_valid():
        pages.report_refusal(request, f"The note was not saved. {pages.first_errors(form)['text']}")
    elif not _add_note(
        request, membership, checkout.pk, checkout.merchant_order_id, form.cleaned_data["text"]
    ):
        pages.report_refusal(request, f"An order can have at most {MAX_NOTES} notes.")
    return redirect(f"{reverse('portal_checkout', args=[checkout.pk])}#notes-title")


def _add_note(
    request: HttpRequest, membership: Membership, checkout_uuid: UUID, order_id: str, text: str
) -> bool:
    """Add a note, unless the order has the maximum number of notes. Return whether the note was added."""
    with transaction.atomic(durable=True):
        quota.lock(f"notes:{checkout_uuid}")  # parallel requests wait, so that each note is counted
        if CheckoutNote.objects.filter(checkout_uuid=checkout_uuid).count() >= MAX_NOTES:
            return False
        note = CheckoutNote(merchant=membership.merchant, checkout_uuid=checkout_uuid, user=membership.user)
        note.text = text
        note.save(force_insert=True)
        audit.record(request, membership, "note_written", checkout=str(checkout_uuid), order=order_id)
    return True
