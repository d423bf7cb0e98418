"""Helpers that read the text of a page, and compare it with the texts of a cell in the table of pages."""

import html
import re
from collections.abc import Iterator

from django.utils.html import strip_tags

VALUE = re.compile(r"\{(\w+)\}")
AMOUNT = re.compile(r"£([\d,]+)\.(\d\d)")


def plain(text: object) -> str:
    """Return the text of a page or of a cell, without tags and with single spaces."""
    return re.sub(r"\s+", " ", html.unescape(strip_tags(str(text)))).strip()


def main_of(page: str) -> str:
    """Return the HTML of the page's only <main> element."""
    (found,) = re.findall(r"<main\b.*?</main>", page, re.DOTALL)
    return str(found)


def headline(page: str) -> str:
    """Return the text of the page's only <h1> element."""
    (found,) = re.findall(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    return plain(found)


def paragraphs(page: str) -> list[str]:
    return [plain(found) for found in re.findall(r"<p\b[^>]*>(.*?)</p>", main_of(page), re.DOTALL)]


def pattern(paragraph: object) -> re.Pattern[str]:
    """Return a regular expression for a paragraph of the table. It matches any value for a name in braces."""
    sentences = paragraph if isinstance(paragraph, tuple) else (paragraph,)
    words = plain(" ".join(str(sentence) for sentence in sentences))
    parts = VALUE.split(words)
    for number, part in enumerate(parts):
        parts[number] = r"(.+?)" if number % 2 else re.escape(part)
    return re.compile("".join(parts))


def values_in(page: str, paragraph: object) -> dict[str, str]:
    """Map each placeholder in a paragraph of the table to its value on the page.

    Fail if no paragraph on the page matches.
    """
    shown = pattern(paragraph)
    found = next(filter(None, map(shown.fullmatch, paragraphs(page))), None)
    assert found, (shown.pattern, paragraphs(page))
    return dict(zip(VALUE.findall(str(paragraph)), found.groups(), strict=True))


def pence(text: str) -> int:
    """Return the only amount in a text, in pence."""
    (found,) = AMOUNT.findall(text)
    return int(found[0].replace(",", "") + found[1])


def amounts(text: str) -> Iterator[int]:
    """Yield each amount in a text, in pence."""
    for pounds, rest in AMOUNT.findall(text):
        yield int(pounds.replace(",", "") + rest)
