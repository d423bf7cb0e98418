"""The page for what is our fault."""

from typing import Any, NoReturn

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from checkout.models import Checkout

pytestmark = pytest.mark.django_db


def opened(checkout: Checkout, fault: Exception) -> Any:
    """What a payer sees while every statement fails so."""

    def fail(*_: Any) -> NoReturn:
        raise fault

    with connection.execute_wrapper(fail):
        return Client(raise_request_exception=False).get(f"/pay?id={checkout.pk}")


class TestBroken:
    @pytest.mark.parametrize("fault", [OperationalError("away"), InterfaceError("closed")], ids=repr)
    def test_without_a_database_may_be_asked_for_again(self, unpaid: Checkout, fault: Exception) -> None:
        answer = opened(unpaid, fault)
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert "don’t pay again: open the same link" in answer.content.decode()

    def test_is_our_fault_otherwise(self, unpaid: Checkout) -> None:
        answer = opened(unpaid, ZeroDivisionError("away"))
        assert answer.status_code == 500 and "Retry-After" not in answer
        assert answer["X-Request-Id"] in answer.content.decode()
