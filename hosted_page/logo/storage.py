"""Saves and deletes a merchant's logo, and builds its URLs. Rules brand.logo, brand.logo_address."""

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from hosted_page.logo import decoding, drawing
from hosted_page.logo.drawing import Drawn
from hosted_page.payment_target import absolute
from payments.models import Logo, Merchant


@dataclass(frozen=True)
class LogoOnPage:
    """A logo for pages and chats: the address and width (in CSS pixels) of the small mark, and the URL of the card."""

    mark: str
    width: int
    card: str


def read_upload(content: bytes) -> Drawn:
    """Decode an uploaded file, and draw the logo in all its forms. Raises decoding.Unusable."""
    return drawing.draw(decoding.decode(content), is_test=settings.SANDBOX)


def save_logo(merchant_uuid: UUID, drawn: Drawn) -> None:
    """Save the merchant's logo. It replaces the previous one."""
    with transaction.atomic(savepoint=True):
        version = _record_brand_change(merchant_uuid, drawn.width)
        values = {"version": version, "mark": drawn.mark, "card": drawn.card}
        Logo.objects.update_or_create(merchant_id=merchant_uuid, defaults=values)


def remove(merchant_uuid: UUID) -> bool:
    """Delete the merchant's logo. Return whether there was one."""
    with transaction.atomic(savepoint=True):
        if _lock_merchant(merchant_uuid).logo_version is None:
            return False
        _record_brand_change(merchant_uuid, None)
        Logo.objects.filter(merchant=merchant_uuid).delete()
    return True


def _lock_merchant(merchant_uuid: UUID) -> Merchant:
    return Merchant.objects.select_for_update(no_key=True).get(pk=merchant_uuid)


def _record_brand_change(merchant_uuid: UUID, width: int | None) -> int:
    """Lock the merchant and record a change to its brand. Return the new, unused version number."""
    merchant = _lock_merchant(merchant_uuid)
    merchant.brand_version += 1
    merchant.logo_version = merchant.brand_version if width else None
    merchant.logo_width = width
    merchant.save(update_fields=["brand_version", "logo_version", "logo_width"])
    return merchant.brand_version


def logo_of(merchant: Merchant) -> LogoOnPage | None:
    """Return a merchant's logo for pages, or None if the merchant has no logo."""
    if merchant.logo_version is None or merchant.logo_width is None:
        return None
    return _shown_logo(merchant.pk, merchant.logo_version, merchant.logo_width)


@lru_cache(1024)
def _shown_logo(merchant_uuid: UUID, version: int, width: int) -> LogoOnPage:
    mark, card = (reverse(name, args=[merchant_uuid, version]) for name in ("brand_logo", "brand_card"))
    return LogoOnPage(mark, width, absolute(card))
