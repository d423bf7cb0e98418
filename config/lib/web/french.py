"""French elision: "de" and "que" lose their vowel before a name that begins with a vowel ("d’Amélie")."""

import re

from django.http import HttpResponse
from django.utils.translation import get_language

_BEFORE_VOWEL = re.compile(r"\b([Dd]|[Qq]u)e ((?:<(?:bdi|strong)\b[^>]*>)*)(?=[AEIOUÀÂÆÈÉÊËÎÏÔŒÙÛÜ])")


def elide(text: str) -> str:
    """Return a French text or page with "d’" and "qu’" before words that begin with a capital vowel.

    A translation cannot depend on the name that is inserted into it. This function therefore elides the word
    before the name afterwards. Before a name that begins with H or Y, it keeps the full word, because the
    pronunciation is unknown.
    """
    return _BEFORE_VOWEL.sub(r"\1’\2", text)


def elide_page(response: HttpResponse) -> None:
    """Elide the text of a page if it is French."""
    if get_language() == "fr":
        response.content = elide(response.content.decode()).encode()
