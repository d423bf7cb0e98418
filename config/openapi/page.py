"""The documentation page (GET /api/docs), which shows the API's document to people."""

import functools
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from config import errors
from config.lib.once import Once
from config.openapi import chapters, downloads, guide, page_fields, page_text, reader, recipes, schema
from config.openapi.causes import CAUSES
from config.openapi.errors import ANY, ANYWHERE, WITH_BODY, by_code
from config.openapi.page_fields import Row

Schema = dict[str, Any]
WIDE = (
    dict.fromkeys(ANY, "Any call with a token")
    | dict.fromkeys(WITH_BODY, "Any POST")
    | dict.fromkeys(ANYWHERE, "Any address")
)


class Shown(NamedTuple):
    """A 2xx answer: its status, description, object and example."""

    status: str
    text: SafeString
    thing: str
    example: str


class Call(NamedTuple):
    """An endpoint or an event. `codes` are its error codes by status."""

    anchor: str
    title: str
    line: str
    is_event: bool
    text: SafeString
    scope: str
    parameters: list[Row]
    fields: list[Row]
    request: str
    answers: list[Shown]
    codes: dict[str, list[str]]


class Group(NamedTuple):
    """The calls of a tag."""

    anchor: str
    title: str
    html: SafeString
    calls: list[Call]


class Refusal(NamedTuple):
    """A row of the error table with its cause and remedy.

    `calls` or `wide` says which calls can return it.
    """

    code: str
    status: int
    text: str
    cause: SafeString
    remedy: SafeString
    wide: str
    calls: list[Call]
    example: str


@require_safe
def show_documentation(request: HttpRequest) -> HttpResponse:
    """Show the documentation, GET /api/docs.

    If a portal user is signed in, the page shows their client id (rule docs.own_key).
    """
    who = reader.reader_of(request)
    response = HttpResponse(reader.filled_in(_render_html(who is not None), who))
    response["Cache-Control"] = "private, no-store" if who else "public, max-age=300"
    patch_vary_headers(response, ["Cookie"])
    return response


@functools.cache
def _render_html(is_known: bool) -> str:
    """Return the page for a stranger or, if `is_known`, with placeholders for a reader's names."""
    return render_to_string("docs.html", _page_context() | {"is_known": is_known})


@Once
def _page_context() -> dict[str, Any]:
    document = schema.document()
    groups = [_group_calls(document, tag) for tag in document["tags"]]
    calls = [call for group in groups for call in group.calls]
    return {
        "title": document["info"]["title"],
        "version": document["info"]["version"],
        "base_url": settings.BASE_URL,
        "test_mode": settings.SANDBOX,
        "other_portal": "" if settings.SANDBOX else settings.SANDBOX_PORTAL_URL,
        "who": reader.PLACEHOLDER,
        "parts": chapters.parts(chapters.chapters_text(document)),
        "quick_starts": downloads.quick_starts(),
        "receivers": downloads.receiving(),
        "catching_up": downloads.catching_up(),
        "vectors": downloads.vectors(),
        "recipes": recipes.RECIPES,
        "groups": groups,
        "things": page_fields.things(document),
        "refusals": [_describe_refusal(code, shown, calls) for code, shown in by_code().items()],
    }


def _group_calls(document: Schema, tag: Schema) -> Group:
    places = {**document["paths"], **document["webhooks"]}
    calls = [
        _describe_call(document, place, method.upper(), operation)
        for place, methods in places.items()
        for method, operation in methods.items()
        if tag["name"] in operation["tags"]
    ]
    calls.sort(key=lambda call: schema.NAMES.index(call.anchor) if call.anchor in schema.NAMES else -1)
    name = tag["name"]
    return Group(page_text.slug(name), name, page_text.block(guide.TAGS[name], name), calls)


def _describe_call(document: Schema, place: str, method: str, operation: Schema) -> Call:
    is_event = place in document["webhooks"]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return Call(
        anchor=operation["operationId"],
        title=place if is_event else operation["summary"],
        line=f"{operation['summary']}." if is_event else f"{method} {place}",
        is_event=is_event,
        text=page_text.inline(operation["description"]),
        scope=next((scope for need in operation["security"] for scope in need["oauth2"]), ""),
        parameters=page_fields.parameters(document, operation),
        fields=page_fields.rows(document, media.get("schema", {})),
        request=reader.without_names(_example_text(media)),
        answers=[] if is_event else _success_answers(operation),
        codes=_own_error_codes(operation),
    )


def _success_answers(operation: Schema) -> list[Shown]:
    """Return the 2xx answers, without the error envelopes."""
    return [
        Shown(
            status, page_text.inline(answer["description"]), page_fields.thing_of(media), _example_text(media)
        )
        for status, answer in operation["responses"].items()
        for media in [answer.get("content", {}).get("application/json", {})]
        if "examples" not in media
    ]


def _example_text(media: Schema) -> str:
    return page_text.json(media["example"]) if "example" in media else ""


def _own_error_codes(operation: Schema) -> dict[str, list[str]]:
    """Return the call's own error codes by status. The error table names the codes that many calls share."""
    found = {
        status: answer.get("content", {}).get("application/json", {}).get("examples", {})
        for status, answer in operation["responses"].items()
    }
    own = {status: [code for code in codes if code not in WIDE] for status, codes in found.items()}
    return {status: codes for status, codes in own.items() if codes}


def _describe_refusal(code: str, example: Schema, calls: list[Call]) -> Refusal:
    found = [call for call in calls if any(code in codes for codes in call.codes.values())]
    return Refusal(
        code,
        errors.ERRORS[code].status,
        page_text.typeset(example["summary"]),
        page_text.inline(CAUSES[code].words),
        page_text.inline(CAUSES[code].remedy),
        WIDE.get(code, ""),
        found,
        page_text.json(example["value"]),
    )
