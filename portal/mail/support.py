"""The words with which every mail names our support."""

from django.conf import settings


def support_in_words() -> str:
    """Return "our support", with the address to write to. Without an address, return only these words."""
    return f"our support at {settings.SUPPORT_EMAIL}" if settings.SUPPORT_EMAIL else "our support"
