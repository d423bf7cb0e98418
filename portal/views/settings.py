"""The settings page: name, colour, country, links, hosts to return to, unpaid lifetime, the opt-in."""

import re
from typing import Any
from zoneinfo import ZoneInfo

import phonenumbers
from allauth.core.exceptions import ReauthenticationRequired
from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.validators import MaxLengthValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import get_language_info

from config.lib import clock
from hosted_page.models import OptInText
from hosted_page.opt_in import consent
from payments.models import Merchant
from portal import access, audit, pages
from portal.access import requires
from portal.models import Membership

_HOST = re.compile(
    r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(:\d{1,5})?"
)
MAX_HOSTS, MAX_OF_ADDRESS = 20, 200
HERE = "portal_settings"
FEWEST_MINUTES, MAX_MINUTES = 15, 1440


class AddressField(forms.URLField):
    """An https address; one that is too long is refused before it is parsed."""

    def clean(self, value: Any) -> str:
        MaxLengthValidator(MAX_OF_ADDRESS)(value or "")
        url = str(super().clean(value))
        if url and not url.startswith("https://"):
            raise forms.ValidationError("Write an address that starts with https://.")
        return url


class SettingsForm(forms.Form):
    """The settings, each field as a person writes it."""

    name = forms.CharField(max_length=120, error_messages={"required": "Write the name that customers know."})
    brand_colour = forms.RegexField(
        r"^#[0-9A-Fa-f]{6}$",
        error_messages={"invalid": "Write a colour as # and six digits, such as #A61C59."},
    )
    country = forms.CharField(max_length=2)
    time_zone = forms.CharField(max_length=64)
    support_url = AddressField(required=False, max_length=MAX_OF_ADDRESS, assume_scheme="https")
    terms_url = AddressField(required=False, max_length=MAX_OF_ADDRESS, assume_scheme="https")
    privacy_url = AddressField(required=False, max_length=MAX_OF_ADDRESS, assume_scheme="https")
    return_hosts = forms.CharField(required=False, max_length=6000)
    unpaid_minutes = forms.IntegerField(
        required=False,
        min_value=FEWEST_MINUTES,
        max_value=MAX_MINUTES,
        error_messages={
            "min_value": "Between 15 minutes and a day (1440).",
            "max_value": "Between 15 minutes and a day (1440).",
            "invalid": "Write whole minutes, such as 60.",
        },
    )
    opt_in_enabled = forms.BooleanField(required=False)

    def clean_country(self) -> str:
        country = str(self.cleaned_data["country"]).upper()
        if country not in phonenumbers.SUPPORTED_REGIONS:
            raise forms.ValidationError("Write a country’s two letters, such as GB.")
        return country

    def clean_time_zone(self) -> str:
        zone = str(self.cleaned_data["time_zone"])
        if zone not in clock.zones():
            raise forms.ValidationError("Choose a time zone from the list, such as Europe/London.")
        ZoneInfo(zone)
        return zone

    def clean_return_hosts(self) -> list[str]:
        hosts = [host.lower() for host in self.cleaned_data["return_hosts"].replace(",", " ").split()]
        wrong = [host for host in hosts if not _HOST.fullmatch(host)]
        if wrong:
            raise forms.ValidationError(
                f"“{wrong[0][:60]}” is no host. Write names such as shop.example, one a line."
            )
        if len(hosts) > MAX_HOSTS:
            raise forms.ValidationError("Write at most 20 hosts.")
        return list(dict.fromkeys(hosts))


@requires("view")
def shown(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Show the settings."""
    return _show(request, membership)


@requires("change_settings", form_of="portal_settings")
def changed(request: HttpRequest, membership: Membership) -> HttpResponse:
    """Save the settings. A change of the name, by which customers know whom they pay, requires fresh proof."""
    form = SettingsForm(request.POST)
    if not form.is_valid():
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


def _problem(text: str, language: str) -> str:
    if language not in dict(settings.LANGUAGES):
        return "Choose a language."
    if not 20 <= len(text) <= 500:
        return "Write 20 to 500 characters: who sends, by e-mail and text, and that one can stop any time."
    return ""


def _show(request: HttpRequest, membership: Membership, **more: Any) -> HttpResponse:
    texts = OptInText.objects.filter(merchant=membership.merchant_id).order_by("-version")[:20]
    context: dict[str, Any] = {
        "values": _values(membership),
        "errors": {},
        "zones": sorted(clock.zones()),
        "usual_minutes": int(settings.UNPAID_CHECKOUT_LIFETIME.total_seconds() // 60),
        "texts": texts,
        "languages": _languages(),
        "wording": "",
        "language": settings.LANGUAGE_CODE,
    }
    return pages.show(request, membership, "portal/settings.html", context | more, here=HERE)


def _values(membership: Membership) -> dict[str, Any]:
    """Return the settings as the form's fields show them."""
    merchant = Merchant.objects.get(pk=membership.merchant_id)
    values = {name: getattr(merchant, name) for name in SettingsForm.base_fields}
    values["return_hosts"] = "\n".join(merchant.return_hosts)
    if merchant.unpaid_minutes is None:
        values["unpaid_minutes"] = ""
    return values


def _languages() -> list[tuple[str, str]]:
    return [(code, get_language_info(code.split("-")[0])["name"]) for code, _ in settings.LANGUAGES]
