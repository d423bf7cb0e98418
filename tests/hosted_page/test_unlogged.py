"""The tables that PostgreSQL empties after a crash, and the tables that it keeps (rule sign_in.crash)."""

import pytest
from django.db import connection, models

from checkout.models import Checkout
from hosted_page.models import CardTry, PayerSignIn, SignInCode, SmsMessage

pytestmark = [pytest.mark.django_db, pytest.mark.rule("sign_in.crash")]


@pytest.mark.parametrize(
    ("model", "is_kept"),
    [(SignInCode, False), (CardTry, False), (SmsMessage, True), (PayerSignIn, True), (Checkout, True)],
)
def test_only_tables_of_short_lived_data_are_unlogged(model: type[models.Model], is_kept: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = %s", [model._meta.db_table])
        assert cursor.fetchone() == ("p" if is_kept else "u",)
