"""The payer's language: the one they choose at the foot of a page, else their merchant's wish, else the browser's.

Rule prefill.language.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST

from config.lib.web.page_middleware import PAYERS

A_YEAR = 365 * 86_400


class LanguageMiddleware:
    """Answers in the payer's language on the payer's pages; everything else, the API first of all, is in English."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(PAYERS):
            return self._get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language):
            response = self._get_response(request)
            spoken = translation.get_language() or language  # the order's, if its merchant wishes for one
        response.headers.setdefault("Content-Language", spoken)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response


def prefer(request: HttpRequest, locale: str) -> None:
    """Answer this request in a locale's language, unless it is none of ours, or the payer has chosen one."""
    if locale and not _known(request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")):
        translation.activate(_known(locale) or translation.get_language() or settings.LANGUAGE_CODE)


def _known(locale: str) -> str:
    """Return the language of ours that a locale such as `fr-CA` or `fr_CA` asks for, "" for none."""
    try:
        return translation.get_supported_language_variant(locale.replace("_", "-").lower())
    except (LookupError, ValueError):
        return ""


def others() -> list[tuple[str, str]]:
    """Return the languages other than the active one, each by its code and its own name."""
    spoken = translation.get_language()
    return [(code, name) for code, name in settings.LANGUAGES if code != spoken]


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Keep the chosen language in a cookie, and redirect back to the page."""
    wanted, back = request.POST.get("language", ""), request.POST.get("next", "")
    if wanted not in dict(settings.LANGUAGES) or not back.startswith("/pay") or "\\" in back:
        return HttpResponseBadRequest()
    response = HttpResponseRedirect(back, status=303)
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        wanted,
        max_age=A_YEAR,
        secure=not settings.LOCAL,
        httponly=True,
        samesite="Lax",
    )
    return response
