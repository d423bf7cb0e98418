"""Jinja2 templates for payers' pages, compiled to Python.

Django's template language needed half of such a page's CPU time.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.template.backends.utils import csrf_input
from django.templatetags.static import static
from django.urls import reverse
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from jinja2 import Environment, FileSystemLoader, PrefixLoader, StrictUndefined
from jinja2.ext import Extension
from jinja2.runtime import Macro
from markupsafe import Markup

from config.lib.web import static_files, units

FOLDERS = ("hosted_page", "bank", "stripe")  # in templates/; the other folders use Django's language
PARTS = "hosted_page/_parts.html"
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)


class WithoutIndents(Extension):
    """Compile templates without the indents of their lines.

    Pages are not compressed, and one byte in fifteen would belong to an indent. The line breaks stay, so that
    words remain separate.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return _INDENT.sub("", source)


def environment(**options: Any) -> Environment:
    """Return the environment for payers' pages. If a page's context lacks a name, the template raises an error."""
    folders = {name: FileSystemLoader(settings.BASE_DIR / "templates" / name) for name in FOLDERS}
    options |= {"loader": PrefixLoader(folders), "undefined": StrictUndefined}
    options |= {"autoescape": True, "extensions": ["jinja2.ext.i18n", WithoutIndents]}
    jinja = Environment(**options)  # noqa: S701 (autoescape is on)
    jinja.policies["ext.i18n.trimmed"] = True
    jinja.install_gettext_callables(  # type: ignore[attr-defined]  # of its extension
        translate, translation.ngettext, newstyle=True, pgettext=translation.pgettext
    )
    jinja.globals |= {
        "_": translate,
        "static": cache(static),
        "script": static_files.script,
        "stylesheet": static_files.stylesheet,
        "url": cache(reverse),
        "get_language": translation.get_language,
        "htmx_script": partial(static_files.script, static_files.HTMX),
    }
    parts = _macros_of(jinja, PARTS)
    jinja.globals |= parts | {"icon": cache(parts["icon"])}  # thirty icons a page, the same for all payers
    return jinja


def _macros_of(pages: Environment, name: str) -> dict[str, Macro]:
    """Return a template's macros by name, for use as globals. An import would run again for each payer."""
    members = vars(pages.get_template(name).module)
    return {name: macro for name, macro in members.items() if isinstance(macro, Macro)}


def translate(words: str) -> Markup:
    """Translate a text of our pages into the active language. Its HTML tags are not escaped."""
    return _translator_of(translation.get_language())(words)


@cache
def _translator_of(language: str | None) -> Callable[[str], Markup]:
    """Return the function that translates our pages' texts into this language."""

    @cache  # a look-up in the catalogues takes ten times as long; the number of texts is fixed
    def said_in_it(words: str) -> Markup:
        with translation.override(language):
            return Markup(units.join_units(translation.gettext(words)))  # noqa: S704 (ours)

    return said_in_it


def page_globals(request: HttpRequest) -> dict[str, Any]:
    """Return the template values that are made only once per page.

    These are `csrf_input` for all forms of the page, and `_` and `gettext` for its language.
    """
    said_in_it = _translator_of(translation.get_language())

    def gettext(words: str, **values: Any) -> Markup:
        return said_in_it(words) % values

    return {"csrf_input": SimpleLazyObject(lambda: csrf_input(request)), "_": said_in_it, "gettext": gettext}
