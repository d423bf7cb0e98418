"""The models of tables that SQL files create have exactly the columns of these tables."""

import pytest
from django.db import connection, models

from checkout.models import ApiCall
from webhooks.models import Attempt, Delivery, Event


@pytest.mark.django_db
@pytest.mark.parametrize("model", [ApiCall, Attempt, Delivery, Event])
def test_a_model_has_the_columns_of_its_table(model: type[models.Model]) -> None:
    with connection.cursor() as cursor:
        table = connection.introspection.get_table_description(cursor, model._meta.db_table)
    found = {column.name: column.null_ok for column in table}
    assert found == {field.column: field.null for field in model._meta.concrete_fields}
