"""Chooses the payer's language (rules page.language, prefill.language).

The payer can choose a language in the footer of a page. Without a choice, the pages use the language that the merchant
sent, or else the browser's language.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST

from config.lib.web.paths import PAYER_PREFIXES

A_YEAR = 365 * 86_400


class LanguageMiddleware:
    """Middleware that translates the payer's pages into the payer's language.

    All other responses, such as those of the API, are in English.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(PAYER_PREFIXES):
            return self._get_response(request)
        language = translation.get_language_from_request(request)
        with translation.override(language):
            response = self._get_response(request)
            # `prefer_locale` can change the language during the request.
            active_language = translation.get_language() or language
        response.headers.setdefault("Content-Language", active_language)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response


def prefer_locale(request: HttpRequest, locale: str) -> None:
    """Use the language of a locale for this request.

    If the payer has chosen a language, or if the service does not support the locale's language, the language
    stays the same.
    """
    if locale and not _supported_language(request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")):
        translation.activate(
            _supported_language(locale) or translation.get_language() or settings.LANGUAGE_CODE
        )


def _supported_language(locale: str) -> str:
    """Return the supported language of a locale such as `fr-CA` or `fr_CA`, or "" if there is none."""
    try:
        return translation.get_supported_language_variant(locale.replace("_", "-").lower())
    except (LookupError, ValueError):
        return ""


def other_languages() -> list[tuple[str, str]]:
    """Return the languages other than the active one, each with its code and its name in that language."""
    active_language = translation.get_language()
    return [(code, name) for code, name in settings.LANGUAGES if code != active_language]


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Store the chosen language in a cookie, and redirect back to the page."""
    code, return_path = request.POST.get("language", ""), request.POST.get("next", "")
    if code not in dict(settings.LANGUAGES) or not return_path.startswith("/pay") or "\\" in return_path:
        return HttpResponseBadRequest()
    response = HttpResponseRedirect(return_path, status=303)
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        code,
        max_age=A_YEAR,
        secure=not settings.LOCAL,
        httponly=True,
        samesite="Lax",
    )
    return response
