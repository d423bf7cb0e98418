"""Views that serve a merchant's logo: small for pages, large for chats. Rule brand.logo_address."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from payments.models import Logo


@require_safe
def show_mark(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """Return the small logo, which pages show next to the merchant's name."""
    return _serve_picture("mark", merchant_uuid, version)


@require_safe
def show_chat_card(request: HttpRequest, merchant_uuid: UUID, version: int) -> HttpResponse:
    """Return the picture that a chat shows with a group link."""
    return _serve_picture("card", merchant_uuid, version)


def _serve_picture(name: str, merchant_uuid: UUID, version: int) -> HttpResponse:
    """Return the PNG at an address, where it never changes. Raises Http404 unless the version is current."""
    content = (
        Logo.objects.filter(merchant=merchant_uuid, version=version).values_list(name, flat=True).first()
    )
    if content is None:
        raise Http404
    response = HttpResponse(bytes(content), content_type="image/png")
    patch_cache_control(response, public=True, max_age=31_536_000, immutable=True)
    return response
