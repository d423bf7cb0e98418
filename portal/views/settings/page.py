"""The settings page: name, colour, logo, country, links, return hosts, the lifetime of unpaid orders, the opt-in."""

from typing import Any, NamedTuple

from allauth.core.exceptions import ReauthenticationRequired
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils.translation import get_language_info
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from config.lib import clock
from config.lib.web import csp
from hosted_page.logo import decoding, storage
from hosted_page.logo.drawing import Drawn
from hosted_page.models import OptInText
from hosted_page.opt_in import consent
from payments import settings_form
from payments.models import Merchant
from payments.settings_form import SettingsForm
from portal import access, audit, pages
from portal.access import requires
from portal.models import Membership
from portal.views.settings import logo, preview

HERE = logo.HERE
# The labels of the fields. The list of errors uses them to link to the fields.
LABELS = {
    "name": "Name",
    "brand_colour": "Colour",
    "logo": "Logo",
    "shop_url": "Shop’s address",
    "support_url": "Help page",
    "terms_url": "Terms page",
    "privacy_url": "Privacy page",
    "return_hosts": "Sites we may send customers back to",
    "unpaid_minutes": "Minutes to pay",
    "country": "Country",
    "time_zone": "Time zone",
    "text": "New wording",
    "language": "Language of the new wording",
}


class Wording(NamedTuple):
    """A new wording for the opt-in, as typed in the form, and its language code.

    `text` is "" if no wording was typed.
    """

    text: str
    language: str


@requires("view")
def show_settings(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the settings."""
    return _show_page(request, membership)


# `_save_changes` checks the CSRF token. An earlier check would parse a file from a person who is not logged in.
@csrf_exempt
@requires("change_settings", form_of=HERE, reads_form=logo.take_in_memory)
def save_settings(request: HttpRequest, membership: Membership) -> HttpResponseBase:
    """Save the settings, the logo and a new wording for the opt-in, or show a preview of the form's values.

    A change to a sensitive setting, such as the name, requires fresh proof of identity. The logo is saved
    even if that proof is still missing.
    """
    return _save_changes(request, membership)


@csrf_protect
def _save_changes(request: HttpRequest, membership: Membership) -> HttpResponse:
    form, wording = SettingsForm(request.POST), _typed_wording(request.POST)
    drawn, errors = _read_logo(request, pages.first_errors(form) | _wording_errors(wording))
    if errors or "preview" in request.POST:
        return _show_page(request, membership, values=request.POST, errors=errors, wording=wording)
    if drawn:
        logo.save_logo(request, membership, drawn)
    saved = _write_changes(request, membership, form.cleaned_data, wording)
    if saved or not drawn:
        messages.success(request, saved or "There were no changes.")
    return redirect(HERE)


def _read_logo(request: HttpRequest, errors: dict[str, str]) -> tuple[Drawn | None, dict[str, str]]:
    """Return the uploaded logo, or None, and the form's errors.

    If there are errors, one of them asks for the file again, because a browser does not keep a chosen file.
    """
    try:
        drawn = logo.read_sent_logo(request)
    except decoding.Unusable as unusable:
        return None, errors | {"logo": str(unusable)}
    again = {"logo": "Choose the file again: it is not saved yet."} if errors and drawn else {}
    return drawn, errors | again


def _write_changes(
    request: HttpRequest, membership: Membership, values: dict[str, Any], wording: Wording
) -> str:
    """Save the changes. Return a message about them, or "" without changes.

    Raises ReauthenticationRequired.
    """
    with transaction.atomic(durable=True):
        changed = _write_settings(request, membership, values)
        version = _write_wording(request, membership, wording) if wording.text else 0
    wording_message = f"Version {version} of the opt-in wording is shown from now on." if version else ""
    return " ".join(filter(None, ("Saved." if changed or version else "", wording_message)))


def _write_settings(request: HttpRequest, membership: Membership, values: dict[str, Any]) -> list[str]:
    """Save the settings that have changed and return their names. Raises ReauthenticationRequired."""
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=membership.merchant_id)
    changed = [name for name, value in values.items() if getattr(merchant, name) != value]
    if not audit.SENSITIVE_SETTINGS.keys().isdisjoint(changed) and not access.has_fresh_proof(request):
        raise ReauthenticationRequired
    if "brand_colour" in changed:
        merchant.brand_version += 1  # browsers cache the style sheet with the old colour permanently
    for name in changed:
        setattr(merchant, name, values[name])
    if changed:
        merchant.save(update_fields=[*changed, "brand_version"])
        audit.record(request, membership, "settings_changed", fields=changed)
    return changed


def _write_wording(request: HttpRequest, membership: Membership, wording: Wording) -> int:
    """Write a new version of the opt-in's wording. Return the version's number.

    Earlier versions stay unchanged.
    """
    text, language = wording
    version = consent.save_text(membership.merchant, text=text, language=language).version
    facts = {"version": version, "language": language}
    audit.record(request, membership, "opt_in_wording_written", **facts)
    return version


def _typed_wording(form: QueryDict) -> Wording:
    text = " ".join(form.get("text", "").split()).replace("\x00", "")  # PostgreSQL cannot store NUL
    return Wording(text, form.get("language", ""))


def _wording_errors(wording: Wording) -> dict[str, str]:
    """Return the errors in a new wording, by field. The result is empty if no wording was typed."""
    if not wording.text:
        return {}
    if wording.language not in dict(settings.LANGUAGES):
        return {"language": "Choose a language."}
    if not 20 <= len(wording.text) <= 500:
        return {
            "text": "Write 20 to 500 characters. Say who sends e-mails and texts, and that customers can stop any time."
        }
    return {}


def _show_page(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    merchant = Merchant.objects.get(pk=membership.merchant_id)
    more.setdefault("values", _field_values(merchant))
    more["wrong"] = [(name, LABELS[name]) for name in LABELS if name in more.get("errors", {})]
    context = {"preview": preview.preview_of(merchant, more["values"]), **_page_context(merchant), **more}
    response = pages.show_page(request, membership, "portal/settings.html", context, here=HERE)
    csp.allow(response, {"frame-src": ["'self'"]})
    return response


def _page_context(merchant: Merchant) -> dict[str, Any]:
    """Return the context for the page before the form is sent, without the values of the fields."""
    return {
        "logo": storage.logo_of(merchant),
        "errors": {},
        "zones": sorted(clock.zone_names()),
        "countries": settings_form.countries(),
        "usual_minutes": int(settings.UNPAID_CHECKOUT_LIFETIME.total_seconds() // 60),
        **_wordings_by_language(merchant),
        "languages": _language_choices(),
        "wording": Wording("", settings.LANGUAGE_CODE),
    }


def _field_values(merchant: Merchant) -> dict[str, Any]:
    """Return the settings in the form in which the fields show them."""
    values = {name: getattr(merchant, name) for name in SettingsForm.base_fields}
    values["return_hosts"] = "\n".join(merchant.return_hosts)
    if merchant.unpaid_minutes is None:
        values["unpaid_minutes"] = ""
    return values


def _wordings_by_language(merchant: Merchant) -> dict[str, list[dict[str, Any]]]:
    """Return the opt-in's current and earlier wordings, with the names of their languages."""
    names = dict(_language_choices())
    texts = list(OptInText.objects.filter(merchant=merchant.pk).order_by("is_ours", "-version")[:20])
    newest = {
        text.language: text
        for text in reversed(texts)
        if text.is_ours == texts[0].is_ours and _is_wording_current(merchant, text)
    }
    rows = [{"text": text, "language": names.get(text.language, "any language")} for text in texts]
    return {
        "in_use": [row for row in rows if row["text"] in newest.values()],
        "earlier": [row for row in rows if row["text"] not in newest.values()],
    }


def _is_wording_current(merchant: Merchant, text: OptInText) -> bool:
    """Return whether a wording can still be in use.

    The service's own wordings contain the merchant's name. A wording with a previous name is no longer in
    use.
    """
    return not text.is_ours or text.text == consent.our_words(merchant, text.language)


def _language_choices() -> list[tuple[str, str]]:
    return [(code, get_language_info(code.split("-")[0])["name"]) for code, _ in settings.LANGUAGES]
