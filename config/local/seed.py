"""A local database that is ready for a first payment. It is migrated, and has two merchants and an operator.

The demo shop belongs to one of the merchants.
"""

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import django

from config.local import CannotStart

OPERATOR = "operator@example.com"
SHOP_COLOUR = "#0E2233"
SHOP_PAGES = {"support": "help", "terms": "terms", "privacy": "privacy", "shop": ""}


def main(path: Path) -> None:
    """Migrate the database. Create the seed and its credentials file (0600), unless both exist already.

    Raises CannotStart for a database that cannot be migrated.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from config.local import migration_check

    migration_check.migrate()
    if not _is_seeded(path):
        path.write_text(json.dumps(_write_seed()))
        path.chmod(0o600)


def _is_seeded(path: Path) -> bool:
    from portal.models import ApiClient

    if not path.exists():
        return False
    known = json.loads(path.read_text())
    return bool(ApiClient.objects.filter(client_id=known["client_id"]).exists())


def _write_seed() -> dict[str, str]:
    from portal.models import User

    acme, shop = _create_merchants()
    password = secrets.token_urlsafe(16)
    operator, _ = User.objects.get_or_create(email=OPERATOR, is_staff=True, is_superuser=True)
    operator.set_password(password)
    operator.save()
    return {
        "client_id": acme.client_id,
        "client_secret": acme.client_secret,
        "portal_email": acme.portal_email,
        "portal_password": acme.portal_password,
        "admin_username": OPERATOR,
        "admin_password": password,
        "shop_client_id": shop.client_id,
        "shop_client_secret": shop.client_secret,
        "shop_portal_email": shop.portal_email,
        "shop_portal_password": shop.portal_password,
    }


def _create_merchants() -> tuple[Any, Any]:
    """Create Acme Tickets and the demo shop's merchant, with their colours and the addresses of the shop's pages."""
    from payments.models import Merchant
    from portal import provisioning

    run = secrets.token_hex(3)
    acme = provisioning.create_merchant("Acme Tickets", email=f"owner-{run}@acme.example")
    shop = provisioning.create_merchant("Night Ferries", email=f"owner-{run}@shop.example")
    Merchant.objects.filter(pk=acme.merchant.pk).update(brand_colour="#A61C59")
    Merchant.objects.filter(pk=shop.merchant.pk).update(brand_colour=SHOP_COLOUR, **_shop_pages())
    return acme, shop


def _shop_pages() -> dict[str, str]:
    """Return the addresses of the demo shop's pages, keyed by the merchant's field names."""
    site = f"http://127.0.0.1:{os.environ.get('SHOP_PORT', '8001')}"
    return {f"{name}_url": f"{site}/{page}" for name, page in SHOP_PAGES.items()}


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except CannotStart as reason:
        sys.exit(str(reason))
