import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import translation

from checkout.models import Checkout
from tests.hosted_page.browsers import Payer, words
from tests.hosted_page.rare_messages.captured_orders import speaking

PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w*\}")


@pytest.fixture(params=["en-gb", "de", "es", "fr", "it", "nl"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lea(unpaid: Checkout, language: str) -> Payer:
    return speaking(Payer(unpaid), language)


@pytest.fixture
def shows(language: str) -> Callable[..., bool]:
    """Return a function that checks whether a page contains a sentence in this language.

    The placeholders of the sentence can have any values.
    """

    def shows_sentence(page: Any, sentence: str, plural: str = "", count: int = 1) -> bool:
        with translation.override(language):
            translated = (
                translation.ngettext(sentence, plural, count) if plural else translation.gettext(sentence)
            )
        assert translated not in (sentence, plural) or language == "en-gb"
        gaps = ".{1,80}?".join(re.escape(part) for part in PLACEHOLDER.split(" ".join(translated.split())))
        return bool(re.search(gaps, " ".join(html.unescape(words(page)).split())))

    return shows_sentence
