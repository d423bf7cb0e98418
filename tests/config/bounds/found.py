"""Finds the product's regular expressions, forms, fields and routes that read untrusted input."""

import contextlib
import functools
import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.urls import URLPattern, get_resolver
from rest_framework import serializers

from config.lib.api.fields import List
from payments.merchants import admin as merchants_admin
from portal.accounts import login_forms, passkey_forms
from tests.config import addresses

PRODUCT = ("checkout", "config", "hosted_page", "payments", "portal", "webhooks")
# Modules that read only trusted input: our own files, command arguments, or environment variables. The webhook
# receivers are examples: they run on the merchants' servers, not in this service.
OURS = (
    *(
        "/config/local/",
        "/config/openapi/",
        "/config/settings.py",
        "/config/env.py",
        "/portal/developer_docs/",
    ),
    *("/management/", "/migrations/", "/webhooks/receivers/"),
)
NAMED = re.compile(r"^(\w+) = re\.compile\(", re.M)
# Forms in these modules look up a user or edit a row, so the tests check only the fields, not the whole forms.
WITH_A_ROW = (login_forms.__name__, passkey_forms.__name__, merchants_admin.__name__)

PARSES = re.compile(
    r"\b(?:urlsplit|urlparse|parse_qsl?|unquote\w*|\w+\.loads|\w*b64decode|ip_address|ip_network|fromisoformat"
    r"|parse_datetime|strptime|phonenumbers\.parse|yarl\.URL|URL\.build|set_response_params|unicodedata\.normalize"
    r"|EmailValidator|message_from_\w+|strict_json\.parse|csv\.\w+|shlex\.\w+)\("
)

Act = Callable[[str], object]


@functools.cache
def sources() -> dict[str, str]:
    """Map the file name of each product module to its source, without the paths that OURS lists."""
    root = Path(settings.BASE_DIR)
    every = (path for folder in PRODUCT for path in (root / folder).rglob("*.py"))
    named = {str(path.relative_to(root)): path for path in every}
    return {
        name: path.read_text() for name, path in named.items() if not any(part in f"/{name}" for part in OURS)
    }


def parsing() -> set[str]:
    """Return the modules that call a parser."""
    return {module for module, source in sources().items() if PARSES.search(source)}


def unnamed() -> list[str]:
    """Return the modules with a regular expression that `expressions` misses.

    `expressions` finds a regular expression only if a module compiles it and assigns it to a name at the top level.
    """
    every = re.compile(r"\bre\.\w+\(")
    return [name for name, text in sources().items() if len(every.findall(text)) != len(NAMED.findall(text))]


def expressions() -> Iterator[tuple[str, Act]]:
    """Yield a label and a function for each method that the code calls on a regular expression.

    The function applies the method to a text.
    """
    for module, source in sources().items():
        for name in NAMED.findall(source):
            expression = getattr(importlib.import_module(module[:-3].replace("/", ".")), name)
            for method in sorted(_methods(name, source) or _methods(name, "\n".join(sources().values()))):
                yield f"{module} {name}.{method}", _method_of(expression, method)


def _methods(name: str, source: str) -> set[str]:
    return set(re.findall(rf"\b{name}\.(match|fullmatch|search|sub|split|findall|finditer)\b", source))


def _method_of(expression: re.Pattern[str], method: str) -> Act:
    if method == "finditer":
        return expression.findall
    act: Act = functools.partial(expression.sub, "") if method == "sub" else getattr(expression, method)
    return act if isinstance(expression.pattern, str) else lambda text: act(text.encode())


def routes() -> Iterator[tuple[str, Act]]:
    """Yield each route with a variable part, and a function that matches a text against the route.

    The function adds the fixed beginning of the route to the text before it matches.
    """
    written = {str(pattern.pattern): pattern for _, pattern in addresses.below(get_resolver().url_patterns)}
    for part, pattern in written.items():
        if re.search(r"[<(]", part):
            yield part, functools.partial(_matched, pattern, re.split(r"[<(]", part.lstrip("^"))[0])


def _matched(pattern: URLPattern, beginning: str, text: str) -> object:
    return pattern.pattern.match(f"{beginning}{text}")


def form_classes() -> Iterator[tuple[str, Act]]:
    """Yield the name and the validation function of every form that people fill in."""
    for form in _below(forms.Form):
        act = _fields if form.__module__ in WITH_A_ROW else _form
        yield f"{form.__module__} {form.__name__}", functools.partial(act, form)


def _form(form: type[forms.Form], text: str) -> None:
    form(dict.fromkeys(form.base_fields, text)).is_valid()


def _fields(form: type[forms.Form], text: str) -> None:
    for field in form.base_fields.values():
        with contextlib.suppress(ValidationError):
            field.clean(text)


def fields() -> Iterator[tuple[str, Act]]:
    """Yield the name and the validation function of every field type in request bodies and queries."""
    kinds = {type(field).__name__: field for _, field in _input_fields()}
    for name, field in kinds.items():
        yield name, functools.partial(_run, field)


def lists_without_an_end() -> list[str]:
    """Return the names of list fields that do not limit the length of a list before they check its items."""
    return [
        name
        for name, field in _input_fields()
        if isinstance(field, serializers.ListField) and not (isinstance(field, List) and field.max_length)
    ]


def _input_fields() -> Iterator[tuple[str, Any]]:
    for serializer in _below(serializers.Serializer):
        if serializer.__name__.endswith(("In", "Query")):
            for name, field in serializer().fields.items():
                yield f"{serializer.__name__}.{name}", field


def _run(field: Any, text: str) -> None:
    with contextlib.suppress(serializers.ValidationError):
        field.run_validation([text] if isinstance(field, serializers.ListField) else text)


def _below(base: type[Any]) -> Iterator[type[Any]]:
    """Yield the direct and indirect subclasses of a class that the product's modules define."""
    for found in base.__subclasses__():
        if found.__module__.startswith(PRODUCT):
            yield found
        yield from _below(found)
