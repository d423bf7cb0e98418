"""The number of rows in a table is estimated, without counting them."""

import pytest
from django.db import connection
from django.test import Client

from payments.models import Merchant
from portal.backoffice import estimates, frame
from tests.portal import people

pytestmark = pytest.mark.django_db
ALL = [model for rows in frame.RECORDS.values() for _, model in rows]


def test_estimates_are_postgresqls_last_statistics(acme: Merchant, rival: Merchant) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE payments_merchant")
    assert estimates.estimated_rows(ALL)["payments.merchant"] == Merchant.objects.count() == 2


def test_estimates_are_labelled_on_the_first_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    people.operate(client)
    monkeypatch.setattr(
        estimates, "estimated_rows", lambda models: {"payments.merchant": 1234, "payments.payment": 14}
    )
    page = client.get("/admin/").content.decode()
    assert "about 1,200<" in page and "about 14" not in page, "few are soon others"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (0, ""),
        (-1, ""),
        (14, ""),
        (999, ""),
        (1000, "about 1,000"),
        (1234, "about 1,200"),
        (1_987_654, "about 2,000,000"),
    ],
)
def test_estimates_are_shown_rounded_and_only_for_large_tables(rows: int, words: str) -> None:
    assert estimates.in_words(rows) == words
