"""Each model in the admin has a top for its pages."""

import pytest
from django.contrib import admin

from portal.backoffice.record_heads import registry

pytestmark = [pytest.mark.django_db, pytest.mark.rule("operator.page")]


class TestEveryModel:
    def test_has_a_top(self) -> None:
        labels = {model._meta.label_lower for model in admin.site._registry} - {"checkout.checkout"}
        assert labels == set(registry.HEADS) | set(registry.SENTENCES)
