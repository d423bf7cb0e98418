import os

import psycopg
import pytest

from payments.models import Merchant
from tests.factories import MerchantFactory
from tests.mutants import running


@pytest.mark.django_db(transaction=True)
def test_reset_deletes_rows_and_ends_other_sessions() -> None:
    MerchantFactory.create()
    running.close_connections()  # the reset would end them too
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT 1")  # begins a transaction
        running.reset_database()
        with pytest.raises(psycopg.OperationalError):
            other.execute("SELECT 1")
    assert not Merchant.objects.exists()
