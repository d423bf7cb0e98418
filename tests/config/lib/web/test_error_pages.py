"""The pages that people see after an internal error, or at an address that does not exist."""

from typing import Any, NoReturn

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from checkout.models import Checkout
from payments.models import Merchant
from portal.models import Role
from tests import factories
from tests.portal import stage

pytestmark = pytest.mark.django_db


def opened(checkout: Checkout, fault: Exception, method: str = "get") -> Any:
    """Return the response that a payer gets while every SQL statement fails with this error."""

    def fail(*_: Any) -> NoReturn:
        raise fault

    with connection.execute_wrapper(fail):
        client = Client(raise_request_exception=False)
        return getattr(client, method)(f"/pay{'/phone' if method == 'post' else ''}?id={checkout.pk}")


class TestErrorPage:
    @pytest.mark.parametrize("fault", [OperationalError("away"), InterfaceError("closed")], ids=repr)
    def test_without_a_database_is_a_503_that_can_be_retried(
        self, unpaid: Checkout, fault: Exception
    ) -> None:
        answer = opened(unpaid, fault)
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        page = answer.content.decode()
        assert page.index("Don’t pay again.") < page.index("Open the same link") < page.index("Open it again")

    def test_is_a_500_with_a_support_code_otherwise(self, unpaid: Checkout) -> None:
        answer = opened(unpaid, ZeroDivisionError("away"))
        assert answer.status_code == 500 and "Retry-After" not in answer
        page = answer.content.decode()
        assert (
            page.index("Open it again")
            < page.index("Quote this code")
            < page.index(answer["X-Request-Id"][-12:])
        )

    def test_does_not_offer_to_repeat_a_form(self, unpaid: Checkout) -> None:
        answer = opened(unpaid, ZeroDivisionError("away"), "post")
        assert answer.status_code == 500 and "Open it again" not in answer.content.decode()


class TestNotFoundPage:
    def test_says_first_that_a_payer_was_not_charged(self) -> None:
        page = Client().get("/pay?id=x").content.decode()
        assert "There is no order at this address" in page
        assert page.index("You were not charged") < page.index("Open it again from the message or shop")

    @pytest.mark.parametrize(
        ("path", "source"),
        [("/pay/stop/cut-off", "the text message."), ("/pay/offers/cut-off", "the message or shop")],
    )
    def test_does_not_mention_an_order_to_a_person_who_opens_a_link_about_texts(
        self, path: str, source: str
    ) -> None:
        page = Client().get(path).content.decode()
        assert "This link does not work" in page and f"Open it again from {source}" in page
        assert "order" not in page and "charged" not in page

    def test_does_not_mention_payment_outside_the_payers_pages(self) -> None:
        page = Client().get("/nowhere").content.decode()
        assert "No page at this address" in page and "charged" not in page

    def test_leads_back_to_the_checkouts_in_the_portal(self, acme: Merchant, rival: Merchant) -> None:
        theirs = factories.checkout(rival).pk
        browser = stage.browser(stage.person(acme, Role.SUPPORT))
        for path in (f"/portal/checkouts/{theirs}", f"/portal/deliveries/{theirs}", "/portal/nowhere"):
            answer = browser.get(path)
            page = answer.content.decode()
            assert answer.status_code == 404 and "Not in this portal" in page and "shop" not in page
            assert 'href="/portal/checkouts"' in page
            assert (
                "You are signed in to" in page and 'id="side-nav"' in page and answer["X-Request-Id"] in page
            )
        assert Client().get(f"/portal/checkouts/{theirs}")["Location"].startswith("/accounts/login/")
