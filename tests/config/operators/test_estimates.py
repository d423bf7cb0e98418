"""About how many rows there are, without counting them."""

import pytest
from django.db import connection
from django.test import Client

from config.operators import estimates, shell
from payments.models import Merchant
from tests.portal import people

pytestmark = pytest.mark.django_db
ALL = [model for rows in shell.RECORDS.values() for _, model in rows]


def test_are_what_postgresql_last_saw(acme: Merchant, rival: Merchant) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE payments_merchant")
    assert estimates.read(ALL)["payments.merchant"] == Merchant.objects.count() == 2


def test_are_labelled_on_the_first_page(client: Client, acme: Merchant) -> None:
    people.operate(client)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE payments_merchant")
    assert "about 1<" in client.get("/admin/").content.decode()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (0, ""),
        (-1, ""),
        (7, "about 7"),
        (99, "about 99"),
        (1234, "about 1,200"),
        (1_987_654, "about 2,000,000"),
    ],
)
def test_say_no_more_than_is_known(rows: int, words: str) -> None:
    assert estimates.in_words(rows) == words
