"""The HTML of the documentation page, which shows the API's document to people."""

import functools
import re
from typing import Any, NamedTuple

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from config.lib.once import Once
from portal.developer_docs import chapters, downloads, guide, page_fields, page_text, reader, recipes
from portal.developer_docs.causes import CAUSES
from portal.developer_docs.page_fields import Row
from portal.developer_docs.reference import ErrorCode, ReadReference, Reference, Schema

# The line breaks and the indentation between two elements. They make up a sixteenth of the page. Text in `pre`
# is kept.
_INDENTATION = re.compile(r"(<pre\b.*?</pre>)|(?<=>)\s*\n\s*(?=<)", re.S)


class SuccessAnswer(NamedTuple):
    """A 2xx answer: its status, description, object and example."""

    status: str
    text: SafeString
    object_name: str
    example: str


class Call(NamedTuple):
    """An endpoint or an event. `codes` maps each status to the error codes with this status.

    `schema_path` is the path of an event's JSON Schema, or "" for an endpoint.
    """

    anchor: str
    title: str
    line: str
    is_event: bool
    text: SafeString
    scope: str
    parameters: list[Row]
    fields: list[Row]
    request: str
    answers: list[SuccessAnswer]
    codes: dict[str, list[str]]
    schema_path: str


class Group(NamedTuple):
    """The calls that have the same tag in the API's document."""

    anchor: str
    title: str
    html: SafeString
    calls: list[Call]


class Refusal(NamedTuple):
    """A row of the error table, with its cause and remedy.

    `returned_by` is a phrase such as "Any POST". If it is empty, only the calls in `calls` can return the
    error. Rule api.error_pages.
    """

    code: str
    status: int
    text: SafeString
    cause: SafeString
    remedy: SafeString
    returned_by: str
    calls: list[Call]
    example: str


@functools.cache
def render_html(read_reference: ReadReference, *, is_known: bool) -> str:
    """Return the page's HTML. If `is_known`, it has placeholders for the names that belong to a signed-in reader."""
    html = render_to_string("docs.html", _page_context(read_reference) | {"is_known": is_known})
    return _INDENTATION.sub(lambda match: match[1] or "\n", html)


@Once
def _page_context(read_reference: ReadReference) -> dict[str, Any]:
    reference = read_reference()
    document = reference.document
    used = {tag["name"] for tag in document["tags"]}
    groups = [_group_calls(reference, name) for name in guide.TAGS if name in used]
    calls = [call for group in groups for call in group.calls]
    return {
        "title": document["info"]["title"],
        "version": document["info"]["version"],
        "base_url": settings.BASE_URL,
        "test_mode": settings.SANDBOX,
        "other_portal": "" if settings.SANDBOX else settings.SANDBOX_PORTAL_URL,
        "reader": reader.PLACEHOLDER,
        "parts": chapters.split_into_parts(chapters.chapters_text(document)),
        "quick_starts": downloads.quick_starts(),
        "receivers": downloads.receiver_programs(),
        "catching_up": downloads.catch_up_parts(),
        "vectors": downloads.count_vectors(),
        "recipes": recipes.RECIPES,
        "groups": groups,
        "response_objects": page_fields.list_response_objects(document),
        "refusals": [_describe_refusal(code, row, calls) for code, row in reference.errors.items()],
    }


def _group_calls(reference: Reference, name: str) -> Group:
    places = {**reference.document["paths"], **reference.document["webhooks"]}
    calls = [
        _describe_call(reference, place, method.upper(), operation)
        for place, methods in places.items()
        for method, operation in methods.items()
        if name in operation["tags"]
    ]
    order = reference.operations
    calls.sort(key=lambda call: order.index(call.anchor) if call.anchor in order else -1)
    return Group(page_text.make_anchor(name), name, page_text.render_block(guide.TAGS[name], name), calls)


def _describe_call(reference: Reference, place: str, method: str, operation: Schema) -> Call:
    document = reference.document
    is_event = place in document["webhooks"]
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return Call(
        anchor=operation["operationId"],
        title=place if is_event else operation["summary"],
        line=f"{operation['summary']}." if is_event else f"{method} {place}",
        is_event=is_event,
        text=page_text.render_inline(operation["description"]),
        scope=next((scope for need in operation["security"] for scope in need["oauth2"]), ""),
        parameters=page_fields.list_parameters(document, operation),
        fields=page_fields.list_fields(document, media.get("schema", {})),
        request=reader.hide_credentials(_example_text(media)),
        answers=[] if is_event else _success_answers(operation),
        codes=_own_error_codes(reference, operation),
        schema_path=operation.get("externalDocs", {}).get("url", "").removeprefix(settings.BASE_URL),
    )


def _success_answers(operation: Schema) -> list[SuccessAnswer]:
    """Return the 2xx answers, leaving out the error envelopes."""
    return [
        SuccessAnswer(
            status,
            page_text.render_inline(answer["description"]),
            page_fields.response_object_name(media),
            _example_text(media),
        )
        for status, answer in operation["responses"].items()
        for media in [answer.get("content", {}).get("application/json", {})]
        if "examples" not in media
    ]


def _example_text(media: Schema) -> str:
    return page_text.to_json(media["example"]) if "example" in media else ""


def _own_error_codes(reference: Reference, operation: Schema) -> dict[str, list[str]]:
    """Return the call's own error codes by status. The codes that many calls share are only in the error table."""
    codes_by_status = {
        status: answer.get("content", {}).get("application/json", {}).get("examples", {})
        for status, answer in operation["responses"].items()
    }
    own = {
        status: [code for code in codes if not reference.errors[code].returned_by]
        for status, codes in codes_by_status.items()
    }
    return {status: codes for status, codes in own.items() if codes}


def _describe_refusal(code: str, row: ErrorCode, calls: list[Call]) -> Refusal:
    refused_calls = [call for call in calls if any(code in codes for codes in call.codes.values())]
    return Refusal(
        code,
        row.status,
        page_text.render_inline(row.message),
        page_text.render_inline(CAUSES[code].words),
        page_text.render_inline(CAUSES[code].remedy),
        row.returned_by,
        refused_calls,
        page_text.to_json(row.example),
    )
