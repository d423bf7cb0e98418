import re
from pathlib import Path

import pytest

from checkout.models import Checkout, Refund
from checkout.states import Status, VoidReason
from payments.models import Dispute
from portal import badges
from portal.badges import Badge

ICONS = Path(__file__).resolve().parents[2] / "static" / "img" / "icons.svg"
BESIDE = (badges.REFUND_FAILED, badges.REFUND_PENDING, badges.REFUND_RETURNED)


def test_every_status_has_a_badge() -> None:
    assert set(badges.CHECKOUT) == set(Status)
    assert set(badges.REFUND) == set(Refund.Status) and set(badges.DISPUTE) == set(Dispute.Status)


@pytest.mark.parametrize(
    "badge", [*badges.CHECKOUT.values(), *badges.REFUND.values(), *badges.DISPUTE.values(), *BESIDE]
)
def test_a_badge_has_words_and_an_icon_that_exists(badge: Badge) -> None:
    assert badge.words and re.search(rf'id="{badge.icon}"', ICONS.read_text())


@pytest.mark.parametrize(
    ("reason", "note"),
    [(VoidReason.AUTH_EXPIRED, "hold lapsed"), (VoidReason.MERCHANT_CANCEL, "you cancelled")],
)
def test_the_badge_of_a_voided_order_says_why(reason: VoidReason, note: str) -> None:
    assert badges.of_checkout(Checkout(status=Status.VOIDED, void_reason=reason)).note == note
