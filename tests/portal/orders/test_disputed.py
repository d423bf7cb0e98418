"""A dispute in the merchant's words: what the cardholder said, and where the money is."""

import pytest

from checkout.models import Checkout
from payments.models import Dispute
from portal.models import Role
from portal.orders import disputed
from tests.outside import decide, dispute
from tests.portal import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("posted")]


@pytest.mark.parametrize("reason", [*disputed.SAID, "bank_cannot_process", ""])
def test_a_reason_is_a_sentence(reason: str) -> None:
    said = disputed.told(reason)
    assert said[0].isupper() and said.rstrip("”").endswith(".") and "_" not in said


@pytest.mark.parametrize(
    ("is_won", "where"),
    [(None, "At the cardholder’s bank"), (True, "places-shop"), (False, "Back with the cardholder")],
)
def test_the_page_says_where_the_money_is(captured: Checkout, is_won: bool | None, where: str) -> None:
    found = dispute(captured.payment)
    Dispute.objects.filter(pk=found.pk).update(reason="fraudulent")
    if is_won is not None:
        decide(found, is_won=is_won)
    page = stage.browser(stage.person(captured.merchant, Role.OWNER)).get(f"/portal/checkouts/{captured.pk}")
    words = page.content.decode()
    assert where in words and words.count("Where the money is") == 1
    assert ("Until then it counts as yours in your balance." in words) == (is_won is None)
    assert "I did not make this payment." in words and "<dd>fraudulent" not in words.lower()
