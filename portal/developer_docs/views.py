"""The views of the documentation: the page for people, and the pages for machines."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from config.lib.once import Once
from portal.developer_docs import machine_pages, page, reader
from portal.developer_docs.public_bodies import PublicBody, public_body, public_response
from portal.developer_docs.reader import Reader
from portal.developer_docs.reference import ReadReference

HTML, MARKDOWN, PLAIN = (f"text/{kind}; charset=utf-8" for kind in ("html", "markdown", "plain"))


@require_safe
def show_documentation(request: HttpRequest, *, read_reference: ReadReference) -> HttpResponse:
    """Show the documentation, GET /api/docs. `read_reference` returns the API's reference.

    If a portal user is signed in, the page shows their client id (rule docs.own_key). A caller who prefers
    Markdown gets all chapters as one text (rule docs.markdown).
    """
    if prefers_markdown(request):
        response = public_response(request, _whole_body(read_reference))
    elif signed_in_reader := reader.reader_of(request):
        response = _personal_response(read_reference, signed_in_reader)
    else:
        response = public_response(request, _page_body(read_reference))
    patch_vary_headers(response, ["Accept", "Cookie"])
    return response


@csrf_exempt  # without this, a POST would get 403 for its missing CSRF token instead of 405
@require_safe
def show_whole_text(request: HttpRequest, *, read_reference: ReadReference) -> HttpResponse:
    """Show all chapters as one Markdown text, GET /api/docs.md."""
    return public_response(request, _whole_body(read_reference))


@csrf_exempt
@require_safe
def show_markdown_page(request: HttpRequest, name: str, *, read_reference: ReadReference) -> HttpResponse:
    """Show a chapter as Markdown, GET /api/docs/<name>.md."""
    if name not in machine_pages.markdown_pages(read_reference):
        raise Http404
    return public_response(request, _chapter_body(read_reference, name))


@require_safe
def show_llms_text(request: HttpRequest, *, read_reference: ReadReference) -> HttpResponse:
    """Show the list of the pages for machines, GET /llms.txt (rule docs.llms)."""
    return public_response(request, _llms_body(read_reference))


def prefers_markdown(request: HttpRequest) -> bool:
    """Return whether the header Accept prefers Markdown to HTML."""
    return request.get_preferred_type(["text/html", "text/markdown"]) == "text/markdown"


def _personal_response(read_reference: ReadReference, signed_in_reader: Reader) -> HttpResponse:
    """Return the page with the reader's names. It is for only one reader, so it is neither cached nor compressed."""
    html = page.render_html(read_reference, is_known=True)
    headers = {"Cache-Control": "private, no-store"}
    return HttpResponse(reader.fill_in_names(html, signed_in_reader), headers=headers)


@Once
def _page_body(read_reference: ReadReference) -> PublicBody:
    return public_body(reader.fill_in_names(page.render_html(read_reference, is_known=False), None), HTML)


@Once
def _whole_body(read_reference: ReadReference) -> PublicBody:
    return public_body(machine_pages.whole_text(read_reference), MARKDOWN)


@Once
def _chapter_body(read_reference: ReadReference, name: str) -> PublicBody:
    return public_body(machine_pages.markdown_pages(read_reference)[name].text, MARKDOWN)


@Once
def _llms_body(read_reference: ReadReference) -> PublicBody:
    return public_body(machine_pages.llms_text(read_reference), PLAIN)
