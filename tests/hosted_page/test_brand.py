import re

import pytest
from django.test import Client

from hosted_page import brand
from payments.models import Merchant
from tests import factories
from tests.hosted_page.browsers import Payer

pytestmark = pytest.mark.django_db
# The style sheets of the first step, on which the payer enters a phone number.
PHONE = [f"hosted_page/{name}" for name in ("frame", "step", "sign_in")]


def sheets(page: str) -> list[str]:
    return re.findall(r'<link rel="stylesheet" href="([^"]+)"', page)


class TestTheMerchantsSheet:
    def test_replaces_the_stylesheet_of_tokens(self, acme: Merchant) -> None:
        page = Payer(factories.checkout(acme)).get().content.decode()
        first, *others = sheets(page)
        assert re.fullmatch(rf"/brand/{acme.pk}-1\.css\?{brand.TOKENS_VERSION}", first)
        assert others == [f"/static/css/{name}.css" for name in ("components", *PHONE)]
        sheet = Client().get(first)
        assert sheet["Content-Type"] == "text/css; charset=utf-8"
        assert sheet.content.decode().startswith(brand.TOKENS) and "--paper:#111613;" in brand.TOKENS
        assert sheet.content.decode().rindex("--brand:#1F4596;") > len(brand.TOKENS)
        assert sheet["Cache-Control"] == "public, max-age=31536000, immutable"

    def test_is_not_cached_for_a_page_of_another_release(self, acme: Merchant) -> None:
        sheet = Client().get(f"/brand/{acme.pk}-1.css?{'0' * 12}")
        assert sheet.status_code == 200 and sheet["Cache-Control"] == "no-store"

    def test_is_not_on_a_page_without_an_order(self) -> None:
        page = Client().get("/pay?id=01a1ff87-30a0-763f-ad37-2dcca246cbf9").content.decode()
        assert sheets(page)[0] == "/static/css/tokens.css" and "/brand/" not in page
