"""The template tags of the operators' pages."""

from typing import Any

import pytest
from django.test import Client
from django.utils.safestring import mark_safe

from checkout.models import Checkout
from portal.templatetags.operators import with_labels


def test_cells_have_the_names_of_their_columns() -> None:
    cells = [mark_safe('<td class="action-checkbox">x</td>'), mark_safe("\n<th><a href='/'>1</a></th>")]
    headers: list[dict[str, Any]] = [
        {"text": mark_safe('<input type="checkbox">')},
        {"text": 'whose "money"'},
    ]
    assert with_labels(cells, headers) == [
        '<td data-label="" class="action-checkbox">x</td>',
        "<th data-label=\"Whose &quot;money&quot;\"><a href='/'>1</a></th>",
    ]


@pytest.mark.django_db
def test_a_list_without_a_table_of_its_own_folds_on_a_phone(operator: Client, captured: Checkout) -> None:
    page = operator.get("/admin/checkout/change/").content.decode()
    assert (
        '<div class="results panel-rows">' in page and '<td data-label="From" class="field-origin">' in page
    )
    assert "No replaced links yet" in operator.get("/admin/checkout/replacedlink/").content.decode()
