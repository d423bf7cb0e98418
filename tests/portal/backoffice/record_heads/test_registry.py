"""For each model in the admin, the top of its pages is defined."""

import pytest
from django.contrib import admin
from django.test import Client

from checkout.models import Checkout
from portal.backoffice.record_heads import registry
from tests.portal.backoffice.record_heads.tops import address_of, page_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestEveryModel:
    def test_links_to_its_order(self, operator: Client, captured: Checkout) -> None:
        row = captured.changes.latest("pk")
        assert text_of(operator, row).endswith("Entries never change. Open the order")
        assert f'href="{address_of(captured)}"' in page_of(operator, row)

    def test_has_a_top(self) -> None:
        labels = {model._meta.label_lower for model in admin.site._registry} - {"checkout.checkout"}
        assert labels == set(registry.HEADS) | set(registry.SENTENCES)
