"""The settings page: name, colour, logo, country, links, hosts to return to, unpaid lifetime, the opt-in."""

from typing import Any

from allauth.core.exceptions import ReauthenticationRequired
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language_info

from config.lib import clock
from config.lib.web import csp
from hosted_page.logo import keeping
from hosted_page.models import OptInText
from hosted_page.opt_in import consent
from payments.models import Merchant
from portal import access, audit, pages, settings_form
from portal.access import requires
from portal.models import Membership
from portal.settings_form import SettingsForm
from portal.views.settings import preview

HERE = "portal_settings"


@requires("view")
def shown(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the settings."""
    return _show(request, membership)


@requires("change_settings", form_of="portal_settings")
def changed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Save the settings, or show them as they were typed, with their preview.

    A change of the name, by which customers know whom they pay, requires fresh proof.
    """
    form = SettingsForm(request.POST)
    if not form.is_valid() or "preview" in request.POST:
        return _show(request, membership, values=request.POST, errors=pages.errors(form))
    different = _write(request, membership, form.cleaned_data)
    messages.success(request, "Saved." if different else "Nothing was different.")
    return redirect("portal_settings")


def _write(request: HttpRequest, membership: Membership, wanted: dict[str, Any]) -> list[str]:
    """Save what is different and return its names. Raises ReauthenticationRequired."""
    with transaction.atomic():
        merchant = Merchant.objects.select_for_update(no_key=True).get(pk=membership.merchant_id)
        different = [name for name, value in wanted.items() if getattr(merchant, name) != value]
        if not audit.SENSITIVE_SETTINGS.keys().isdisjoint(different) and not access.is_fresh(request):
            raise ReauthenticationRequired
        if "brand_colour" in different:
            merchant.brand_version += 1  # the old colour's sheet is cached for good
        for name in different:
            setattr(merchant, name, wanted[name])
        if different:
            merchant.save(update_fields=[*different, "brand_version"])
            audit.record(request, membership, "settings_changed", fields=different)
    return different


@requires("change_settings", form_of="portal_settings")
def opt_in_wording(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Write a new version of the opt-in box's words; earlier ones stay as they were shown."""
    typed, language = request.POST.get("text", ""), request.POST.get("language", "")
    text = " ".join(typed.split()).replace("\x00", "")  # PostgreSQL has no NUL
    problem = _problem(text, language)
    if problem:
        return _show(request, membership, errors={"text": problem}, wording=typed, language=language)
    with transaction.atomic():
        written = consent.write(membership.merchant, text=text, language=language)
        facts = {"version": written.version, "language": language}
        audit.record(request, membership, "opt_in_wording_written", **facts)
    messages.success(request, f"Version {written.version} is shown from now on.")
    return redirect("portal_settings")


def refuse_logo(request: HttpRequest, membership: Membership, problem: str) -> HttpResponse:
    """Show the settings, and why an upload is no logo."""
    return _show(request, membership, errors={"logo": problem})


def _problem(text: str, language: str) -> str:
    if language not in dict(settings.LANGUAGES):
        return "Choose a language."
    if not 20 <= len(text) <= 500:
        return "Write 20 to 500 characters: who sends, by e-mail and text, and that one can stop any time."
    return ""


def _show(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    merchant = Merchant.objects.get(pk=membership.merchant_id)
    more.setdefault("values", _values(merchant))
    context = {"preview": preview.of(merchant, more["values"]), **_around(merchant), **more}
    response = pages.show(request, membership, "portal/settings.html", context, here=HERE)
    csp.allow(response, {"frame-src": ["'self'"]})
    return response


def _around(merchant: Merchant) -> dict[str, Any]:
    """Return what the page shows beside the values, if nothing was typed or refused."""
    return {
        "logo": keeping.shown(merchant),
        "errors": {},
        "zones": sorted(clock.zones()),
        "countries": settings_form.countries(),
        "usual_minutes": int(settings.UNPAID_CHECKOUT_LIFETIME.total_seconds() // 60),
        **_texts(merchant),
        "languages": _languages(),
        "wording": "",
        "language": settings.LANGUAGE_CODE,
    }


def _values(merchant: Merchant) -> dict[str, Any]:
    """Return the settings as the form's fields show them."""
    values = {name: getattr(merchant, name) for name in SettingsForm.base_fields}
    values["return_hosts"] = "\n".join(merchant.return_hosts)
    if merchant.unpaid_minutes is None:
        values["unpaid_minutes"] = ""
    return values


def _texts(merchant: Merchant) -> dict[str, list[dict[str, Any]]]:
    """Return the wordings of the opt-in, each with its language's name: those in use, and the newest of the others."""
    names = dict(_languages())
    texts = list(OptInText.objects.filter(merchant=merchant.pk).order_by("is_ours", "-version")[:20])
    newest = {text.language: text for text in reversed(texts) if text.is_ours == texts[0].is_ours}
    rows = [{"text": text, "language": names.get(text.language, "any language")} for text in texts]
    return {
        "in_use": [row for row in rows if row["text"] in newest.values()],
        "earlier": [row for row in rows if row["text"] not in newest.values()],
    }


def _languages() -> list[tuple[str, str]]:
    return [(code, get_language_info(code.split("-")[0])["name"]) for code, _ in settings.LANGUAGES]
