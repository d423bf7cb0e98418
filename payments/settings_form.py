"""Forms and fields that check a merchant's settings, for the portal and the admin."""

import re
from typing import Any
from zoneinfo import ZoneInfo

import phonenumbers
from babel import Locale
from django import forms
from django.core.validators import MaxLengthValidator
from rest_framework.serializers import ValidationError

from config.lib import clock
from config.lib.api.fields import ReturnUrl

_HOST = re.compile(
    r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(:\d{1,5})?"
)
MAX_HOSTS, MAX_ADDRESS_LENGTH = 20, 200
MIN_MINUTES, MAX_MINUTES = 15, 1440


class AddressField(forms.URLField):
    """A field for an https address. An address that is too long is refused before it is parsed."""

    def clean(self, value: Any) -> str:
        MaxLengthValidator(MAX_ADDRESS_LENGTH)(value or "")
        url = str(super().clean(value))
        if url and not url.startswith("https://"):
            raise forms.ValidationError("Write an address that starts with https://.")
        return url


class ShopField(forms.CharField):
    """A field for an address to which payers are sent. It has the same checks as the return address of an order.

    Rule create.return_urls.
    """

    def clean(self, value: Any) -> str:
        url = str(super().clean(value))
        try:
            return ReturnUrl().run_validation(url) if url else ""
        except ValidationError:
            raise forms.ValidationError(
                "Write an address that customers can reach, such as https://shop.example."
            ) from None


class SitesField(forms.CharField):
    """A field for the sites to which payers can be sent back, one site per line."""

    widget = forms.Textarea

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value


def countries() -> list[tuple[str, str]]:
    """Return the code and the name of each country whose phone numbers the service can read, sorted by name."""
    names = Locale("en").territories
    return sorted(
        ((code, names[code]) for code in phonenumbers.SUPPORTED_REGIONS if code in names),
        key=lambda it: it[1],
    )


class AppearanceForm(forms.Form):
    """The settings that change the preview of the payment page."""

    name = forms.CharField(max_length=120, error_messages={"required": "Write the name that customers know."})
    brand_colour = forms.RegexField(
        r"^#[0-9A-Fa-f]{6}\Z",
        error_messages={"invalid": "Enter a colour as # and six hexadecimal digits, such as #A61C59."},
    )


class SettingsForm(AppearanceForm):
    """All settings that are saved together."""

    country = forms.CharField(max_length=2)
    time_zone = forms.CharField(max_length=64)
    support_url = AddressField(required=False, max_length=MAX_ADDRESS_LENGTH, assume_scheme="https")
    terms_url = AddressField(required=False, max_length=MAX_ADDRESS_LENGTH, assume_scheme="https")
    privacy_url = AddressField(required=False, max_length=MAX_ADDRESS_LENGTH, assume_scheme="https")
    shop_url = ShopField(required=False, max_length=MAX_ADDRESS_LENGTH)
    return_hosts = SitesField(required=False, max_length=6000)
    unpaid_minutes = forms.IntegerField(
        required=False,
        min_value=MIN_MINUTES,
        max_value=MAX_MINUTES,
        error_messages={
            "min_value": "Enter 15 to 1,440 minutes (1,440 is a day).",
            "max_value": "Enter 15 to 1,440 minutes (1,440 is a day).",
            "invalid": "Write whole minutes, such as 60.",
        },
    )
    opt_in_enabled = forms.BooleanField(required=False)

    def clean_country(self) -> str:
        country = str(self.cleaned_data["country"]).upper()
        if country not in phonenumbers.SUPPORTED_REGIONS:
            raise forms.ValidationError("Enter a country by its two letters, such as GB.")
        return country

    def clean_time_zone(self) -> str:
        zone = str(self.cleaned_data["time_zone"])
        if zone not in clock.zone_names():
            raise forms.ValidationError("Enter a time zone by its name, such as Europe/London.")
        ZoneInfo(zone)
        return zone

    def clean_return_hosts(self) -> list[str]:
        lines = self.cleaned_data["return_hosts"].lower().replace(",", "\n").splitlines()
        wrong = [line.strip() for line in lines if not all(map(_HOST.fullmatch, line.split()))]
        if wrong:
            raise forms.ValidationError(
                f"“{wrong[0][:60]}” is not a site. Write one site on each line, such as shop.example,"
                " or leave it empty for any site."
            )
        hosts = [host for line in lines for host in line.split()]
        if len(hosts) > MAX_HOSTS:
            raise forms.ValidationError("Write at most 20 sites.")
        return list(dict.fromkeys(hosts))
