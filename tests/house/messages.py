"""`make messages`: collects the texts of the payer's pages, and compiles their translations.

The catalogue is config/locale/<language>/LC_MESSAGES/django.po. A new message has no translation until a
person writes one, and the tests fail until then.
"""

import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from config.lib.web import page_templates

ROOT = Path(__file__).resolve().parents[2]
LOCALES = ROOT / "config" / "locale"
CODE = ("hosted_page", "payments/providers")
PAGES = tuple(f"templates/{folder}/*.html" for folder in page_templates.FOLDERS)
# The error pages use Django's template language. All other payer pages use Jinja2.
ERROR_PAGES = "templates/*.html"
KEYWORDS = {**DEFAULT_KEYWORDS, "gettext_lazy": None, "gettext_noop": None, "ngettext_lazy": (1, 2)}
KEYWORDS |= {"pgettext_lazy": ((1, "c"), 2)}
# Jinja2 options. The service also sets `trimmed`. With `silent: false`, an invalid page raises an error.
OPTIONS = {"trimmed": "true", "silent": "false"}
WIDTH = 110
# Indents of a template are removed, because the extractor reads the template's text as Python.
INDENTS = re.compile(r"^ +", re.MULTILINE)
# The date is fixed, so that the same words always compile to the same bytes.
NO_DATE = datetime(2000, 1, 1, tzinfo=UTC)
UNSAID = tuple(
    f'"{name}'.encode()
    for name in ("Project", "Report", "POT-", "PO-", "Last-", "Language-Team", "Generated")
)


def main() -> None:
    """Update each catalogue, and print the messages that are not translated yet."""
    template = collect()
    for folder in sorted(LOCALES.iterdir()):
        known = read(folder.name)
        known.update(template, no_fuzzy_matching=True)
        known.obsolete.clear()
        path(folder.name).write_bytes(written(known))
        for message in missing(known):
            print(f"{folder.name}: {message!r} is not translated yet", file=sys.stderr)


def collect() -> Catalog:
    """Return a catalogue of all messages of the payer's pages, with empty translations."""
    found = Catalog(project="checkout", version="1", msgid_bugs_address="", fuzzy=False)
    for messages, context in _messages():
        found.add(messages, context=context)
    return found


def _messages() -> Iterator[tuple[str | tuple[str, ...], str | None]]:
    for file in sorted(file for folder in CODE for file in (ROOT / folder).rglob("*.py")):
        yield from _of(file.read_text())
    for file in sorted(file for pattern in PAGES for file in ROOT.glob(pattern)):
        yield from _of(file.read_text(), "jinja2")
    for file in sorted(ROOT.glob(ERROR_PAGES)):
        yield from _of(INDENTS.sub("", templatize(file.read_text(), origin=str(file))))


def _of(text: str, language: str = "python") -> Iterator[tuple[str | tuple[str, ...], str | None]]:
    file = io.BytesIO(text.encode())
    for _, messages, _, context in extract(language, file, keywords=KEYWORDS, options=OPTIONS):
        yield messages, context


def path(language: str) -> Path:
    """Return the path of a language's catalogue."""
    return LOCALES / language / "LC_MESSAGES" / "django.po"


def read(language: str) -> Catalog:
    """Return a language's catalogue from its file."""
    with path(language).open("rb") as file:
        catalogue = read_po(file, locale=language)
    catalogue.creation_date = catalogue.revision_date = NO_DATE
    return catalogue


def missing(catalogue: Catalog) -> list[str]:
    """Return the messages without a translation."""
    return [str(message.id) for message in catalogue if message.id and not all(forms(message))]


def forms(message: Message) -> list[str]:
    """Return the translations of a message: one, or one for each plural form of the language."""
    return (
        [message.string]
        if isinstance(message.string, str)
        else [str(form) for form in message.string or [""]]
    )


def written(catalogue: Catalog) -> bytes:
    """Return the content of the catalogue's file, without dates and line numbers.

    Line numbers would change with almost every change to the code.
    """
    file = io.BytesIO()
    write_po(file, catalogue, width=WIDTH, no_location=True, omit_header=False, sort_output=True)
    lines = file.getvalue().splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(UNSAID))


if __name__ == "__main__":
    main()
