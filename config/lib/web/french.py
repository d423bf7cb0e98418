"""French elision: "de" and "que" lose their vowel before a name that begins with one ("d’Amélie")."""

import re

from django.http import HttpResponse
from django.utils.translation import get_language

_BEFORE_VOWEL = re.compile(r"\b([Dd]|[Qq]u)e ((?:<(?:bdi|strong)\b[^>]*>)*)(?=[AEIOUÀÂÆÈÉÊËÎÏÔŒÙÛÜ])")


def elide(text: str) -> str:
    """Return a French text or page with "d’" and "qu’" before words that begin with a capital vowel.

    Names are inserted into sentences, so a translation cannot know whether the word before them is elided. A
    name that begins with H or Y keeps the full word, because its sound is not known.
    """
    return _BEFORE_VOWEL.sub(r"\1’\2", text)


def elide_page(response: HttpResponse) -> None:
    """Elide the text of a page if it is French."""
    if get_language() == "fr":
        response.content = elide(response.content.decode()).encode()
