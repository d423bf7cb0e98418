"""A charge keeps the card of its token."""

import pytest

from payments import provider
from payments.provider import Verdict
from payments.providers.sandbox.models import Charge
from tests.payments.providers.sandbox.teller import DAWN, Teller

pytestmark = pytest.mark.django_db


def ends_well(teller: Teller) -> bool:
    """Whether the money is taken and given back, and its card and payer are told as ever."""
    taken, returned = teller.ask("capture"), teller.ask("refund")
    (told,) = provider.current().payments(DAWN)
    is_told = told.card == taken.card == returned.card and told.subject == teller.payment.subject
    return is_told and (taken.verdict, returned.verdict) == (Verdict.SUCCEEDED, Verdict.PENDING)


def test_a_charge_of_the_release_before_has_its_card_in_its_token() -> None:
    teller = Teller()
    held = teller.ask("authorize")
    Charge.objects.update(subject=None, last4="")
    assert held.card is not None and held.card.last4 == "4242"
    assert ends_well(teller)
