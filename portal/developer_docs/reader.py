"""The reader of the documentation: a merchant's team member who is signed in to the portal, or a stranger."""

import re
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import escape, format_html

from portal import access, keys

CLIENT_ID, CLIENT_SECRET = "<CLIENT_ID>", "<CLIENT_SECRET>"
_CLIENT = re.compile(r'(?<="client_id": ")[^"]+')
_SECRET = re.compile(r'(?<="client_secret": ")[^"]+')


class Reader(NamedTuple):
    """A merchant's name, and the client id and the name of its newest key."""

    merchant: str
    client_id: str
    key: str


PLACEHOLDER = Reader("<MERCHANT>", CLIENT_ID, "<KEY>")


def reader_of(request: HttpRequest) -> Reader | None:
    """Return the reader who is signed in to the portal.

    Return None for a stranger, for a merchant without a key, and for a person who must still set up a second
    factor.
    """
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or not request.user.is_authenticated:
        return None
    membership = access.current_membership(request)
    if membership is None or access.must_set_up_second_factor(membership):
        return None
    key = keys.newest_key(membership.merchant)
    return Reader(membership.merchant.name, key.client_id, key.name) if key else None


def hide_credentials(example: str) -> str:
    """Return an example in which placeholders replace the client id and the secret."""
    return _SECRET.sub(CLIENT_SECRET, _CLIENT.sub(CLIENT_ID, example))


def fill_in_names(page: str, reader: Reader | None) -> str:
    """Return the page with the reader's names instead of placeholders.

    The other placeholders become links to the portal's page of keys.
    """
    for placeholder, value in zip(PLACEHOLDER, reader, strict=True) if reader else ():
        page = page.replace(escape(placeholder), escape(value))
    for placeholder in (CLIENT_ID, CLIENT_SECRET):
        link = format_html('<a href="{}">{}</a>', reverse("portal_keys"), placeholder)
        page = page.replace(escape(placeholder), link)
    return page
