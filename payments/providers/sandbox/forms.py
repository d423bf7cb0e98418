"""The card form on the bank's own page."""

import re
from datetime import UTC, datetime

from django import forms
from django.utils.translation import gettext_lazy

from payments.providers.sandbox.cards import CARDS

_BETWEEN = re.compile(r"[\s-]")
_EXPIRY = re.compile(r"(\d{1,2})\s*/?\s*(\d{2}|20\d{2})")
_CODE = re.compile(r"[0-9]{3,4}")
UNKNOWN_NUMBER = gettext_lazy("This is not a test card. Use one from the list below.")
NOT_A_DATE = gettext_lazy("Enter the date as on the card, MM/YY.")
NOT_A_CODE = gettext_lazy("The code has 3 digits, 4 on American Express.")


class CardForm(forms.Form):
    """Form for the number of a test card, an expiry date that has not passed, and a code of three or four digits."""

    number = forms.CharField(
        max_length=40,
        error_messages={"required": gettext_lazy("Enter the card number."), "max_length": UNKNOWN_NUMBER},
    )
    expiry = forms.CharField(
        max_length=9,
        error_messages={
            "required": gettext_lazy("Enter the expiry date."),
            "max_length": NOT_A_DATE,
        },
    )
    code = forms.CharField(
        max_length=8,
        error_messages={
            "required": gettext_lazy("Enter the security code."),
            "max_length": NOT_A_CODE,
        },
    )

    def clean_number(self) -> str:
        number = _BETWEEN.sub("", self.cleaned_data["number"])
        if number not in CARDS:
            raise forms.ValidationError(UNKNOWN_NUMBER)
        return number

    def clean_expiry(self) -> str:
        found = _EXPIRY.fullmatch(self.cleaned_data["expiry"].strip())
        if not found or not 1 <= int(found[1]) <= 12:
            raise forms.ValidationError(NOT_A_DATE)
        now = datetime.now(UTC)
        if (2000 + int(found[2]) % 100, int(found[1])) < (now.year, now.month):
            raise forms.ValidationError(gettext_lazy("This card has expired. Use another card."))
        return f"{int(found[1]):02d} / {int(found[2]) % 100:02d}"

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"].strip()
        if not _CODE.fullmatch(code):
            raise forms.ValidationError(NOT_A_CODE)
        return code
